// Owns reading the board's power and throttle reasons through NVML, where that library is present.
// Never changes a setting.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ptxb::cuda {

class PowerMeter {
 public:
  explicit PowerMeter(const std::string& bus_id);
  double watts() const;  // 0: unknown
  // NVML's clock event reason bits (thermal, power cap ...); 0: none or unknown.
  unsigned long long reasons() const;

 private:
  void* device_ = nullptr;
};

}  // namespace ptxb::cuda
