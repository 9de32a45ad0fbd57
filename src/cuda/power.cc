// Owns reading power through NVML. Never changes a setting.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/power.h"

#include "cuda/driver.h"

namespace ptxb::cuda {

PowerMeter::PowerMeter(const std::string& bus_id) {
  const auto nvml = load_nvml();
  if (nvml && (*nvml)->device_by_bus_id(bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

double PowerMeter::watts() const {
  unsigned milliwatts = 0;
  if (device_ == nullptr || (*load_nvml())->power_usage_mw(device_, &milliwatts) != 0) return 0;
  return milliwatts / 1000.0;
}

unsigned long long PowerMeter::reasons() const {
  unsigned long long bits = 0;
  if (device_ == nullptr || (*load_nvml())->clock_event_reasons == nullptr) return 0;
  return (*load_nvml())->clock_event_reasons(device_, &bits) == 0 ? bits : 0;
}

}  // namespace ptxb::cuda
