// SPDX-License-Identifier: Apache-2.0
#include "shim/order.h"

#include <algorithm>
#include <map>

namespace ptxb::shim {

namespace {

// Work that something comes after; `started`: also after the beginning of the call on the caller's
// stream.
struct Front {
  std::vector<uint32_t> work;
  bool started = false;

  void merge(const Front& other) {
    for (uint32_t w : other.work) {
      if (std::find(work.begin(), work.end(), w) == work.end()) work.push_back(w);
    }
    started = started || other.started;
  }
};

bool is_blocking(StreamKind kind) {
  return kind != StreamKind::NonBlocking && kind != StreamKind::Legacy;
}

class Orderer {
 public:
  Orderer(const Recording& recording, const std::vector<Step>& steps)
      : recording_(recording), steps_(steps) {}

  Result<OrderedCall> run() {
    fronts_.resize(recording_.streams.size());
    if (fronts_.size() < 2)
      return bad_input("recording: the caller's and the legacy stream are missing");
    fronts_[kCaller].started = true;
    for (step_ = 0; step_ < steps_.size(); ++step_) {
      take(steps_[step_]);
      if (too_wide_ || next_lane_ >= PlanLimits::kStreams) {
        return limit_error("more than " + std::to_string(kMostConcurrent) +
                           " concurrent pieces of work");
      }
    }
    finish();
    return std::move(out_);
  }

 private:
  static constexpr uint32_t kCaller = 0, kLegacy = 1;

  void take(const Step& step) {
    switch (step.kind) {
      case Step::Kind::Work: {
        Front before = entering(step.stream);
        before.merge(host_);
        fronts_[step.stream] = add(*step.action, before, lane_of(step.stream), step.stream);
        break;
      }
      case Step::Kind::Graph:
        graph(step);
        break;
      case Step::Kind::RecordEvent:
        events_[step.event] = entering(step.stream);
        break;
      case Step::Kind::WaitEvent: {
        Front front = entering(step.stream);
        front.merge(events_[step.event]);
        prune(front);
        fronts_[step.stream] = std::move(front);
        break;
      }
      case Step::Kind::SyncStream:
        wait(entering(step.stream));
        break;
      case Step::Kind::SyncEvent:
        wait(events_[step.event]);
        break;
      case Step::Kind::Free:  // cudaFree waits for the device before it gives memory back
      case Step::Kind::SyncDevice:
        for (const Front& front : fronts_) wait(front);
        break;
      case Step::Kind::Allocate:
      case Step::Kind::FreeAsync:
        break;
    }
  }

  void wait(const Front& front) {
    host_.merge(front);
    prune(host_);
  }

  // What the next work on a stream comes after: the legacy stream and the blocking ones wait for
  // each other.
  Front entering(uint32_t stream) {
    Front front = fronts_[stream];
    if (recording_.streams[stream] == StreamKind::Legacy) {
      for (size_t i = 0; i < fronts_.size(); ++i) {
        if (is_blocking(recording_.streams[i])) front.merge(fronts_[i]);
      }
    } else if (is_blocking(recording_.streams[stream])) {
      for (size_t i = 0; i < fronts_.size(); ++i) {
        if (recording_.streams[i] == StreamKind::Legacy) front.merge(fronts_[i]);
      }
    }
    prune(front);
    return front;
  }

  // The legacy stream's work is totally ordered with the caller's: they share plan stream 0.
  uint32_t lane_of(uint32_t stream) {
    if (stream == kCaller || stream == kLegacy) return 0;
    return lanes_.try_emplace(stream, next_lane_).second ? next_lane_++ : lanes_[stream];
  }

  bool reaches(uint32_t later, uint32_t earlier) const {
    return later == earlier ||
           (earlier < later && (reach_[later][earlier / 64] >> (earlier % 64) & 1));
  }

  // Drops work that other work of the front already comes after.
  void prune(Front& front) {
    std::sort(front.work.begin(), front.work.end());
    std::vector<uint32_t> kept;
    for (size_t i = 0; i < front.work.size(); ++i) {
      bool covered = false;
      for (size_t j = i + 1; j < front.work.size() && !covered; ++j)
        covered = reaches(front.work[j], front.work[i]);
      if (!covered) kept.push_back(front.work[i]);
    }
    front.work = std::move(kept);
    too_wide_ = too_wide_ || front.work.size() > kMostConcurrent;
  }

  Front add(const PlanAction& action, Front before, uint32_t lane, uint32_t stream) {
    prune(before);
    auto index = static_cast<uint32_t>(out_.work.size());
    OrderedWork work;
    work.action = action;
    work.stream = lane;
    work.kind = recording_.streams[stream];
    work.step = step_;
    std::vector<uint64_t> reach(index / 64 + 1, 0);
    auto cover = [&](uint32_t earlier) {
      for (size_t word = 0; word < reach_[earlier].size(); ++word)
        reach[word] |= reach_[earlier][word];
      reach[earlier / 64] |= uint64_t{1} << (earlier % 64);
    };
    bool started = before.started;
    auto previous = last_in_lane_.find(lane);
    if (previous != last_in_lane_.end()) {  // implied by the plan stream
      cover(previous->second);
      started = started || started_[previous->second];
    }
    for (size_t i = before.work.size(); i-- > 0;) {
      uint32_t earlier = before.work[i];
      started = started || started_[earlier];
      if (reach[earlier / 64] >> (earlier % 64) & 1) continue;
      work.after.push_back(earlier);
      cover(earlier);
    }
    std::sort(work.after.begin(), work.after.end());
    last_in_lane_[lane] = index;
    reach_.push_back(std::move(reach));
    started_.push_back(started);
    if (!started && !out_.before_start) out_.before_start = index;
    out_.work.push_back(std::move(work));
    return {{index}, started};
  }

  // Chains of a graph share a plan stream; branches get new ones.
  void graph(const Step& step) {
    Front base = entering(step.stream);
    base.merge(host_);
    prune(base);
    std::vector<Front> ends(step.nodes.size());
    std::vector<uint32_t> lanes(step.nodes.size(), 0);
    std::vector<bool> followed(step.nodes.size(), false), extended(step.nodes.size(), false);
    bool main_taken = false;
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      const GraphWork& node = step.nodes[i];
      Front before;
      if (node.after.empty()) before = base;
      for (uint32_t earlier : node.after) {
        followed[earlier] = true;
        before.merge(ends[earlier]);
      }
      prune(before);
      // The first root goes on in the stream's own lane; else continue a predecessor that nobody
      // continued yet.
      std::optional<uint32_t> lane;
      if (node.after.empty() && !main_taken) {
        lane = lane_of(step.stream);
        main_taken = true;
      }
      for (size_t k = 0; k < node.after.size() && !lane; ++k) {
        uint32_t earlier = node.after[k];
        if (!extended[earlier] && step.nodes[earlier].action) {
          lane = lanes[earlier];
          extended[earlier] = true;
        }
      }
      if (!lane) lane = next_lane_++;
      lanes[i] = *lane;
      ends[i] = node.action ? add(*node.action, before, *lane, step.stream) : before;
    }
    Front front;
    for (size_t i = 0; i < step.nodes.size(); ++i) {
      if (!followed[i]) front.merge(ends[i]);
    }
    if (step.nodes.empty()) front = base;
    prune(front);
    fronts_[step.stream] = std::move(front);
  }

  void finish() {
    Front end = entering(kCaller);
    end.merge(host_);
    for (uint32_t i = 0; i < out_.work.size() && !out_.after_end; ++i) {
      bool ended = std::any_of(end.work.begin(), end.work.end(),
                               [&](uint32_t last) { return reaches(last, i); });
      if (!ended) out_.after_end = i;
    }
  }

  const Recording& recording_;
  const std::vector<Step>& steps_;
  OrderedCall out_;
  size_t step_ = 0;
  std::vector<Front> fronts_;                 // by stream
  std::map<uint32_t, Front> events_;          // recorded in this call; others happened before it
  Front host_;                                // what the host has waited for
  std::vector<std::vector<uint64_t>> reach_;  // by work: bits of all work that it comes after
  std::vector<bool> started_;
  std::map<uint32_t, uint32_t> lanes_, last_in_lane_;
  uint32_t next_lane_ = 1;
  bool too_wide_ = false;
};

}  // namespace

Result<OrderedCall> order(const Recording& recording, const std::vector<Step>& steps) {
  return Orderer(recording, steps).run();
}

}  // namespace ptxb::shim
