// Owns the words of findings. Never changes what the program does, except that a fault ends it.
// SPDX-License-Identifier: Apache-2.0
#include "emu/report.h"

#include <algorithm>
#include <bit>

#include "emu/worker.h"
#include "ptx/parse.h"

namespace ptxb::emu {

std::string hex_text(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string block_text(const Cta& cta) {
  return "block (" + std::to_string(cta.id.x) + "," + std::to_string(cta.id.y) + "," +
         std::to_string(cta.id.z) + ")";
}

std::string thread_text(const Warp& w, uint32_t lane) {
  return "thread " + std::to_string(w.index * 32 + lane) + " of " + block_text(*w.cta);
}

CodePlace place_of(const Launch& launch, const Code& code, uint32_t origin) {
  CodePlace place;
  place.kernel = launch.entry.function->name;
  if (origin >= code.function->body.size()) return place;
  const ptx::Instruction& in = code.function->body[origin];
  place.ptx_line = in.line;
  place.ptx_text = ptx::spelling(in, *code.function);
  if (in.source.line) {
    // Paths are the build machine's: the file's own name is what a reader wants.
    place.source_file = code.module->file(in.source.file);
    place.source_file.erase(0, place.source_file.find_last_of('/') + 1);
    place.source_line = static_cast<int>(in.source.line);
  }
  return place;
}

CodePlace place_of(const Warp& w, const Insn* i) {
  const Code* code =
      w.current >= 0 ? w.splits[static_cast<size_t>(w.current)].frame->code : w.frames[0]->code;
  return place_of(w.worker->launch, *code, i->origin);
}

void note(RunState& run, Finding finding) {
  std::lock_guard hold(run.lock);
  // An unrolled source line is many instructions: one finding a pair of source lines.
  auto same_place = [](const CodePlace& a, const CodePlace& b) {
    if (a.kernel != b.kernel) return false;
    if (a.source_line && b.source_line)
      return a.source_line == b.source_line && a.source_file == b.source_file;
    return a.ptx_line == b.ptx_line;
  };
  for (Finding& known : run.findings) {
    if (known.kind == finding.kind && known.grade == finding.grade &&
        same_place(known.place, finding.place) && same_place(known.other, finding.other)) {
      ++known.times;
      return;
    }
  }
  if (run.findings.size() < run.options.finding_limit) run.findings.push_back(std::move(finding));
}

void stop_run(RunState& run, RunStatus status, std::string cause) {
  std::lock_guard hold(run.lock);
  if (run.status == RunStatus::Completed) {
    run.status = status;
    run.cause = std::move(cause);
  }
  run.stop = true;
}

namespace {

// The finding of the lowest cluster is kept; higher ones no longer matter.
void keep_fault(RunState& run, uint64_t cluster, RunStatus status, Finding finding) {
  std::lock_guard hold(run.lock);
  if (run.has_fault && cluster >= run.cause_cluster) return;
  run.has_fault = true;
  run.cause_cluster = cluster;
  run.fault_cluster = cluster;
  run.status = status;
  run.cause = finding.message;
  run.fault = std::move(finding);
}

std::string at_line(const CodePlace& place) {
  std::string text = "PTX line " + std::to_string(place.ptx_line);
  if (place.source_line)
    text += " (" + place.source_file + ":" + std::to_string(place.source_line) + ")";
  return text;
}

std::string lanes_text(const Warp& w, uint32_t mask) {
  if (mask == w.existing) return "all its threads";
  char text[32];
  std::snprintf(text, sizeof text, "lanes 0x%08x", mask);
  return text;
}

std::string barrier_text(const Cta& cta, uint32_t id) {
  const Barrier& b = cta.barriers[id];
  uint32_t expected = b.expected;
  if (expected == 0)
    for (const auto& warp : cta.warps)
      expected += static_cast<uint32_t>(std::popcount(warp->live()));
  return "barrier " + std::to_string(id) + ", " + std::to_string(b.arrived) + " of " +
         std::to_string(expected) + " threads arrived";
}

std::string split_text(const Warp& w, const Split& s, const CodePlace& place) {
  std::string who = "warp " + std::to_string(w.index) + " of " + block_text(*w.cta) + " (" +
                    lanes_text(w, s.mask) + ") at " + at_line(place);
  switch (s.wait) {
    case Wait::Barrier:
      return who + " waits at " + barrier_text(*w.cta, s.barrier);
    case Wait::Converge: {
      char text[64];
      std::snprintf(text, sizeof text, " waits for lanes 0x%08x of its warp", s.needed & ~s.mask);
      return who + text;
    }
    case Wait::Cluster:
      return who + " waits at barrier.cluster";
    case Wait::Mbarrier:
      return who + " waits for " + mbarrier_text(w.worker->launch, *w.cta, s.object);
    case Wait::Warpgroup:
      return who + " waits for the wgmma groups of its warpgroup's other warps";
    case Wait::Join:
      return who + " waits for its warp to reconverge";
    case Wait::Ready:
      return who + " polls";
  }
  return who;
}

const Insn* waiting_insn(const Split& s) {
  // A barrier's split goes on behind it.
  return s.wait == Wait::Barrier || s.wait == Wait::Cluster ? s.pc - 1 : s.pc;
}

Finding stuck(Launch& launch, const std::vector<const Cluster*>& clusters,
              std::string first_words) {
  Finding finding;
  finding.kind = FindingKind::Deadlock;
  std::string text = std::move(first_words);
  size_t told = 0, untold = 0;
  bool divergent = false;
  for (const Cluster* cluster : clusters) {
    for (const auto& cta : cluster->ctas) {
      for (const auto& warp : cta->warps) {
        for (const Split& s : warp->splits) {
          CodePlace place = place_of(launch, *s.frame->code, waiting_insn(s)->origin);
          if (s.wait == Wait::Converge) divergent = true;
          if (told == 0 || (s.wait == Wait::Converge && finding.kind == FindingKind::Deadlock))
            finding.place = place;
          if (s.wait == Wait::Converge) finding.kind = FindingKind::DivergentAligned;
          if (told < 40) {
            text += (told ? "; " : ": ") + split_text(*warp, s, place);
            ++told;
          } else {
            ++untold;
          }
        }
      }
    }
  }
  if (untold) text += "; and " + std::to_string(untold) + " more";
  finding.message = std::move(text);
  finding.hint =
      divergent
          ? "every lane named by the mask (all lanes for .aligned and __syncthreads) must reach "
            "the same instruction"
          : "each thread that the barrier counts must arrive; check exits and branches around it";
  return finding;
}

}  // namespace

const Insn* fault(Warp& w, const Insn* i, FindingKind kind, std::string message, std::string hint) {
  Finding finding;
  finding.kind = kind;
  finding.place = place_of(w, i);
  finding.message = std::move(message);
  finding.hint = std::move(hint);
  keep_fault(w.worker->run, w.cta->cluster->linear, RunStatus::Fault, std::move(finding));
  w.pause = Pause::Stop;
  return nullptr;
}

void report_deadlock(Cluster& cluster) {
  Worker& worker = *cluster.worker;
  keep_fault(worker.run, cluster.linear, RunStatus::Deadlock,
             stuck(worker.launch, {&cluster}, "no warp can go on"));
}

void report_livelock(Worker& worker) {
  std::vector<const Cluster*> all;
  for (const auto& cluster : worker.resident) all.push_back(cluster.get());
  uint64_t waiting =
      worker.launch.wanted() - std::min(worker.launch.next.load(), worker.launch.wanted());
  std::string words = "all running blocks poll memory that nobody changes";
  if (waiting) {
    words += "; " + std::to_string(waiting * worker.launch.ctas_per_cluster) +
             " blocks have not started because only " +
             std::to_string(worker.launch.resident_limit * worker.launch.ctas_per_cluster) +
             " fit on the chip at once (needs co-residency)";
  }
  keep_fault(worker.run, all.empty() ? 0 : all[0]->linear, RunStatus::Deadlock,
             stuck(worker.launch, all, words));
  worker.run.stop = true;
}

}  // namespace ptxb::emu
