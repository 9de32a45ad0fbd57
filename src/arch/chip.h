// Owns the facts about target chips: limits that host code may query and that launches must respect, and peak rates.
// Sources: CUDA C++ Programming Guide 13.0 (compute capabilities), NVIDIA H100/H200/B200 data sheets; H200 rows read off a device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxb::arch {

struct Chip {
  const char* name;          // "H200"
  const char* product;       // cudaDeviceProp::name
  const char* arch;          // "sm_90a"
  int major, minor;
  uint32_t multiprocessors;
  uint32_t max_threads_per_block, max_threads_per_multiprocessor, max_blocks_per_multiprocessor;
  uint32_t registers_per_multiprocessor, max_registers_per_thread;
  uint32_t shared_per_multiprocessor_bytes, shared_per_block_bytes, shared_per_block_optin_bytes, reserved_shared_bytes;
  uint32_t max_cluster_size, max_cluster_size_nonportable;
  uint64_t memory_bytes;
  uint32_t l2_bytes;
  uint32_t clock_khz, memory_clock_khz, memory_bus_bits;
  double bf16_tflops, fp8_tflops, tf32_tflops, fp32_tflops;  // dense, at boost clock
  double memory_gb_s;
};

const std::vector<Chip>& chips();
// By chip name ("H200") or nullptr.
const Chip* find_chip(std::string_view name);
// The chip that stands for an architecture when none is named: sm_90a -> H200, sm_100a -> B200; nullptr for others.
const Chip* default_chip(std::string_view arch);
// "-gencode arch=compute_90a,code=sm_90a" pieces: "compute_90a".
std::string compute_of(std::string_view arch);

}  // namespace ptxb::arch
