// SPDX-License-Identifier: Apache-2.0
#include "arch/chip.h"

namespace ptxb::arch {

const std::vector<Chip>& chips() {
  // Limits: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (9.0 and 10.0).
  static const std::vector<Chip> table = {
      {.name = "H100", .product = "NVIDIA H100 80GB HBM3", .arch = "sm_90a", .major = 9, .minor = 0,
       .multiprocessors = 132, .max_threads_per_block = 1024, .max_threads_per_multiprocessor = 2048,
       .max_blocks_per_multiprocessor = 32, .registers_per_multiprocessor = 65536, .max_registers_per_thread = 255,
       .shared_per_multiprocessor_bytes = 233472, .shared_per_block_bytes = 49152,
       .shared_per_block_optin_bytes = 232448, .reserved_shared_bytes = 1024, .max_cluster_size = 8,
       .max_cluster_size_nonportable = 16, .memory_bytes = 85'024'112'640, .l2_bytes = 52428800,
       .clock_khz = 1980000, .memory_clock_khz = 2619000, .memory_bus_bits = 5120,
       .bf16_tflops = 989.4, .fp8_tflops = 1978.9, .tf32_tflops = 494.7, .fp32_tflops = 66.9, .memory_gb_s = 3352},
      {.name = "H200", .product = "NVIDIA H200", .arch = "sm_90a", .major = 9, .minor = 0,
       .multiprocessors = 132, .max_threads_per_block = 1024, .max_threads_per_multiprocessor = 2048,
       .max_blocks_per_multiprocessor = 32, .registers_per_multiprocessor = 65536, .max_registers_per_thread = 255,
       .shared_per_multiprocessor_bytes = 233472, .shared_per_block_bytes = 49152,
       .shared_per_block_optin_bytes = 232448, .reserved_shared_bytes = 1024, .max_cluster_size = 8,
       .max_cluster_size_nonportable = 16, .memory_bytes = 150'114'992'128, .l2_bytes = 62914560,
       .clock_khz = 1980000, .memory_clock_khz = 3201000, .memory_bus_bits = 6144,
       .bf16_tflops = 989.4, .fp8_tflops = 1978.9, .tf32_tflops = 494.7, .fp32_tflops = 66.9, .memory_gb_s = 4800},
      {.name = "B200", .product = "NVIDIA B200", .arch = "sm_100a", .major = 10, .minor = 0,
       .multiprocessors = 148, .max_threads_per_block = 1024, .max_threads_per_multiprocessor = 2048,
       .max_blocks_per_multiprocessor = 32, .registers_per_multiprocessor = 65536, .max_registers_per_thread = 255,
       .shared_per_multiprocessor_bytes = 233472, .shared_per_block_bytes = 49152,
       .shared_per_block_optin_bytes = 232448, .reserved_shared_bytes = 1024, .max_cluster_size = 8,
       .max_cluster_size_nonportable = 16, .memory_bytes = 191'000'000'000, .l2_bytes = 132644864,
       .clock_khz = 1965000, .memory_clock_khz = 3996000, .memory_bus_bits = 8192,
       .bf16_tflops = 2250, .fp8_tflops = 4500, .tf32_tflops = 1125, .fp32_tflops = 75, .memory_gb_s = 8000},
  };
  return table;
}

const Chip* find_chip(std::string_view name) {
  for (const Chip& chip : chips()) {
    if (name == chip.name) return &chip;
  }
  return nullptr;
}

const Chip* default_chip(std::string_view arch) {
  if (arch == "sm_90a") return find_chip("H200");
  if (arch == "sm_100a") return find_chip("B200");
  return nullptr;
}

std::string compute_of(std::string_view arch) { return "compute_" + std::string(arch.substr(arch.find('_') + 1)); }

}  // namespace ptxb::arch
