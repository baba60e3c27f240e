#include "hw/host.h"

#include <gtest/gtest.h>

#include "hw/test_files.h"

namespace portolan {
namespace {

// Two sockets of one core with two hardware threads each; one last-level cache a socket.
TEST(HostTest, CountsCoresAndCaches) {
  const TemporaryFolder folder;
  std::string cpuinfo;
  for (int cpu = 0; cpu < 4; ++cpu) {
    const int socket = cpu / 2;
    cpuinfo += "processor\t: " + std::to_string(cpu) +
               "\nvendor_id\t: TestVendor\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Test CPU\nstepping\t: "
               "1\nphysical id\t: " +
               std::to_string(socket) + "\ncore id\t\t: 0\n\n";
    const std::string cache = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/";
    const std::string shared = socket == 0 ? "0-1\n" : "2-3\n";
    folder.Write(cache + "index2/level", "2\n");
    folder.Write(cache + "index2/size", "1024K\n");
    folder.Write(cache + "index2/shared_cpu_list", shared);
    folder.Write(cache + "index3/level", "3\n");
    folder.Write(cache + "index3/size", "32768K\n");
    folder.Write(cache + "index3/shared_cpu_list", shared);
    folder.Write(cache + "index0/level", "1\n");
    folder.Write(cache + "index1/level", "1\n");
  }
  folder.Write("proc/cpuinfo", cpuinfo);
  folder.Write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\n");
  const HostMachine host = ReadHostMachine(folder.path());
  EXPECT_EQ(host.cores, 2);
  EXPECT_EQ(host.model, "Test CPU");
  EXPECT_EQ(host.type, "TestVendor 25/17/1");
  EXPECT_EQ(host.memory, Bytes(1024000));
  EXPECT_EQ(host.private_l2, Bytes(1048576));
  EXPECT_EQ(host.last_level_cache, Bytes(2.0 * 33554432));
}

TEST(HostTest, SaysNothingWhereTheMachineSaysNothing) {
  const TemporaryFolder folder;
  const HostMachine host = ReadHostMachine(folder.path());
  EXPECT_EQ(host.cores, 0);
  EXPECT_EQ(host.type, "");
  EXPECT_EQ(host.memory, Bytes(0));
}

}  // namespace
}  // namespace portolan
