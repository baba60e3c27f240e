#pragma once

namespace portolan::device {

// Where launches queue up. For cuda and hip `native` is the vendor's stream (null: the default one) and a launch
// returns before it is done; the emulators run a launch to its end and ignore it.
struct Stream {
  void* native = nullptr;
};

}  // namespace portolan::device
