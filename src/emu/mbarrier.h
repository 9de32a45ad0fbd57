// Owns mbarrier objects: their counts, phases and waiters (PTX ISA 9.7.13.15). Never decodes and
// never moves data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace ptxb::emu {

struct Insn;
struct Code;
struct Warp;
struct Cta;
struct Launch;
enum class Window : uint8_t;

// The 64-bit object in shared memory shows phase and counts in an encoding of our own (PTX leaves
// it opaque); the truth is here, so that a program that overwrites the object is told.
struct Mbarrier {
  static constexpr uint32_t kMostArrivals = (1u << 20) - 1;
  static constexpr int64_t kMostBytes = (1 << 20) - 1;
  uint32_t expected = 0;  // arrivals of a phase
  uint32_t pending = 0;   // of which are missing
  int64_t tx_bytes = 0;   // expected and not completed
  uint64_t phase = 0;     // phases completed
  struct {
    const Code* code = nullptr;
    uint32_t origin = 0, warp = 0, cta_rank = 0;
  } last;  // arrival
  uint64_t word() const {
    return uint64_t{1} << 63 | (phase & 0x7fffff) << 40 | uint64_t{expected} << 20 | pending;
  }
};
// What mbarrier.arrive returns is the word before the arrival.
inline uint32_t pending_of_token(uint64_t token) {
  return static_cast<uint32_t>(token & Mbarrier::kMostArrivals);
}
inline uint64_t phase_of_token(uint64_t token) { return token >> 40 & 0x7fffff; }

using MbarrierTable = std::unordered_map<uint32_t, Mbarrier>;  // by offset in the CTA's window

// A barrier as a lane names it.
struct MbarrierPlace {
  Mbarrier* barrier = nullptr;
  Cta* cta = nullptr;
  uint32_t offset = 0;
  uint8_t* host = nullptr;
};
// All of these return false after fault(). `find` needs an initialised object.
bool place_mbarrier(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                    MbarrierPlace& out);
bool find_mbarrier(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                   MbarrierPlace& out);
bool find_mbarrier_at(Warp& w, const Insn* i, uint32_t lane, Cta& cta, uint32_t offset,
                      MbarrierPlace& out);
bool mbarrier_arrive(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at,
                     uint32_t count);
bool mbarrier_drop(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at, uint32_t count);
bool mbarrier_expect(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at,
                     uint64_t bytes);
bool mbarrier_complete(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at,
                       uint64_t bytes);

// "mbarrier shared+0x40 (phase 3: 1 of 2 arrivals missing, 16 bytes of transactions outstanding;
// ...)"
std::string mbarrier_text(const Launch& launch, const Cta& cta, uint32_t offset);

}  // namespace ptxb::emu
