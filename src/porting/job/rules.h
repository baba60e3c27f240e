#pragma once

#include "porting/job/job_rule.h"

namespace portolan {

// One function a rule; each says in its own file what it looks for.
void ApplyTf32(const JobInput& input, JobOutput* output);
void ApplyEnvironment(const JobInput& input, JobOutput* output);
void ApplyWheelPins(const JobInput& input, JobOutput* output);
void ApplyContainers(const JobInput& input, JobOutput* output);
void ApplyTriton(const JobInput& input, JobOutput* output);
void ApplyTorchDevice(const JobInput& input, JobOutput* output);
void ApplyExtensionFlags(const JobInput& input, JobOutput* output);

}  // namespace portolan
