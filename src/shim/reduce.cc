// SPDX-License-Identifier: Apache-2.0
#include "shim/reduce.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/text.h"
#include "shim/calls.h"

namespace ptxb::shim {

namespace {

using Outcome = std::variant<LaunchPlan, NoPlan>;

NoPlan launch_error(std::string cause, std::string hint) {
  return {Verdict::LaunchError, std::move(cause), std::move(hint)};
}

// Visits each address that an action names, by reference: fields, and 8-byte words on 4-byte steps
// in bytes.
template <class Action, class Visit>
void each_address(Action& action, Visit visit) {
  auto words = [&visit](auto& bytes) {
    for (size_t i = 0; i + 8 <= bytes.size(); i += 4) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, 8);
      if (word < kWindowBegin || word >= kWindowEnd) continue;
      uint64_t before = word;
      visit(word);
      if constexpr (!std::is_const_v<Action>) {
        if (word != before) std::memcpy(bytes.data() + i, &word, 8);
      }
    }
  };
  if (auto* launch = std::get_if<KernelLaunch>(&action))
    words(launch->params);
  else if (auto* write = std::get_if<WriteBytes>(&action)) {
    visit(write->address);
    words(write->bytes);
  } else if (auto* memset = std::get_if<Memset>(&action)) {
    visit(memset->address);
  } else if (auto* copy = std::get_if<CopyDevice>(&action)) {
    visit(copy->destination);
    visit(copy->source);
  }
}

// The bytes of an action that may hold tensor maps, with the address that their alignment counts
// from.
std::pair<std::vector<uint8_t>*, uint64_t> payload(PlanAction& action) {
  if (auto* launch = std::get_if<KernelLaunch>(&action)) return {&launch->params, 0};
  if (auto* write = std::get_if<WriteBytes>(&action)) return {&write->bytes, write->address};
  return {nullptr, 0};
}

class Reducer {
 public:
  Reducer(const Request& request, const Recording& recording, Places places)
      : request_(request), recording_(recording), places_(std::move(places)) {}

  Result<Outcome> run() {
    for (int call = 0; call < kCalls; ++call) {
      auto ordered = order(recording_, recording_.calls[static_cast<size_t>(call)]);
      if (!ordered && ordered.error().code == ErrorCode::Limit) {
        return Outcome(NoPlan{Verdict::LaunchUnsupported, ordered.error().message,
                              "use fewer concurrent streams"});
      }
      if (!ordered) return std::move(ordered).error();
      ordered_[call] = *std::move(ordered);
      views_[call] = {call + 1, &ordered_[call],
                      allocations_of(recording_.calls[static_cast<size_t>(call)])};
    }
    if (auto refusal = check_lifetimes()) return Outcome(*std::move(refusal));
    if (auto refusal = check_steady()) return Outcome(*std::move(refusal));
    return build();
  }

 private:
  // Scratch that is used after it was freed, in host order over all calls.
  std::optional<NoPlan> check_lifetimes() {
    std::vector<bool> freed(recording_.allocations.size(), false);
    for (int call = 0; call < kCalls; ++call) {
      const std::vector<Step>& steps = recording_.calls[static_cast<size_t>(call)];
      const OrderedCall& ordered = ordered_[call];
      size_t next_work = 0;
      for (size_t s = 0; s < steps.size(); ++s) {
        if (steps[s].kind == Step::Kind::Free || steps[s].kind == Step::Kind::FreeAsync)
          freed[steps[s].allocation] = true;
        for (; next_work < ordered.work.size() && ordered.work[next_work].step == s; ++next_work) {
          std::optional<uint32_t> dead = dead_scratch(ordered.work[next_work].action, freed);
          if (!dead) continue;
          return launch_error(
              work_name(ordered, next_work) + " of call " + std::to_string(call + 1) +
                  " uses scratch of " + std::to_string(recording_.allocations[*dead].size_bytes) +
                  " bytes that was freed before",
              "free scratch after the last work that uses it was issued, in stream order");
        }
      }
    }
    return std::nullopt;
  }

  std::optional<uint32_t> dead_scratch(const PlanAction& action,
                                       const std::vector<bool>& freed) const {
    std::optional<uint32_t> dead;
    auto check = [&](const uint64_t& address) {
      std::optional<Place> place = places_.find(address);
      if (place && place->kind == Place::Kind::Allocation && address >= place->base &&
          freed[place->index])
        dead = place->index;
    };
    each_address(action, check);
    auto [bytes, origin] = payload(const_cast<PlanAction&>(action));
    if (bytes) {
      for (size_t at : tensor_map_images(*bytes, origin)) {
        uint32_t index = tensor_map_index(*bytes, at);
        if (index < recording_.tensor_maps.size()) check(recording_.tensor_maps[index].address);
      }
    }
    return dead;
  }

  std::optional<NoPlan> check_steady() {
    const OrderedCall& steady = ordered_[1];
    auto is_launch = [](const OrderedWork& work) {
      return std::holds_alternative<KernelLaunch>(work.action);
    };
    if (std::none_of(steady.work.begin(), steady.work.end(), is_launch)) return nothing_launched();
    for (int call = 0; call < kCalls; ++call) {
      if (ordered_[call].after_end) return unordered(call, *ordered_[call].after_end, "end");
      // First-call initialisation may run on a stream of its own: no earlier work can need what it
      // makes.
      if (call > 0 && ordered_[call].before_start)
        return unordered(call, *ordered_[call].before_start, "start");
    }
    if (auto text = difference(request_, recording_, places_, views_[1], views_[2])) {
      return NoPlan{Verdict::LaunchUnsupported,
                    "run behaves differently from call to call: " + *text,
                    "derive everything from the arguments of the call; key caches by every pointer "
                    "and size they hold"};
    }
    return std::nullopt;
  }

  NoPlan nothing_launched() const {
    for (const Refusal& refusal : recording_.refusals) {
      if (refusal.call == 2) {
        return launch_error("run launched nothing; " + printable(refusal.api, 100) +
                                " failed: " + printable(refusal.why, 600),
                            "fix the launch; check every CUDA call's result");
      }
    }
    return launch_error("run launched nothing", "launch at least one kernel in every call of run");
  }

  NoPlan unordered(int call, size_t index, std::string_view edge) const {
    const OrderedWork& work = ordered_[call].work[index];
    std::string cause = "work on a side stream is not ordered ";
    cause += edge == "end" ? "before the end of the caller's stream: "
                           : "after the start of the caller's stream: ";
    cause += work_name(ordered_[call], index) + " of call " + std::to_string(call + 1) +
             " runs on " + stream_text(work.kind);
    return launch_error(
        cause,
        "launch on the stream that run is given, or fork from it and join it again with events");
  }

  Result<Outcome> build() {
    LaunchPlan plan;
    bool keep_setup = difference(request_, recording_, places_, views_[0], views_[1]).has_value();
    if (keep_setup) {
      plan.setup = operations(ordered_[0]);
      for (PlanOperation& operation : plan.setup) rebase(operation.action);
    }
    plan.steady = operations(ordered_[1]);
    for (const Argument& a : request_.arguments) {
      if (a.scalar) continue;
      plan.buffers.push_back({a.name, a.output ? BufferRole::Output : BufferRole::Input,
                              a.addresses[1], a.size_bytes});
    }
    add_scratch(plan, keep_setup);
    plan.symbols = recording_.symbols;
    plan.modules.resize(1);
    plan.modules.insert(plan.modules.end(), recording_.modules.begin(), recording_.modules.end());
    for (std::vector<PlanOperation>* list : {&plan.setup, &plan.steady}) {
      for (PlanOperation& operation : *list)
        PTXB_CHECK_OK(number_maps(operation.action, plan, list == &plan.setup));
    }
    return Outcome(std::move(plan));
  }

  static std::vector<PlanOperation> operations(const OrderedCall& call) {
    std::vector<PlanOperation> out;
    for (const OrderedWork& work : call.work) out.push_back({work.stream, work.after, work.action});
    return out;
  }

  // The first call's tensors stand at the second call's addresses in the plan.
  uint64_t rebased(uint64_t address) const {
    std::optional<Place> place = places_.find(address);
    if (!place || place->kind != Place::Kind::Argument || place->call != 1) return address;
    return address - place->base + request_.arguments[place->index].addresses[1];
  }
  void rebase(PlanAction& action) const {
    each_address(action, [this](uint64_t& address) { address = rebased(address); });
  }

  // Every allocation that can be alive in the plan: those of the second call, and older ones not
  // freed before it.
  void add_scratch(LaunchPlan& plan, bool with_setup) const {
    std::vector<bool> wanted(recording_.allocations.size(), false);
    for (int call = 0; call < 2; ++call) {
      for (const Step& step : recording_.calls[static_cast<size_t>(call)]) {
        if (step.kind == Step::Kind::Allocate) wanted[step.allocation] = true;
        bool ends = step.kind == Step::Kind::Free || step.kind == Step::Kind::FreeAsync;
        if (ends && call == 0 && !with_setup) wanted[step.allocation] = false;
      }
    }
    size_t count = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) continue;
      const Allocation& a = recording_.allocations[i];
      plan.buffers.push_back(
          {"scratch" + std::to_string(count++), BufferRole::Scratch, a.address, a.size_bytes});
    }
  }

  // Gives the plan the maps that it uses, numbered in order of use.
  Result<void> number_maps(PlanAction& action, LaunchPlan& plan, bool in_setup) {
    auto [bytes, origin] = payload(action);
    if (!bytes) return {};
    for (size_t at : tensor_map_images(*bytes, origin)) {
      uint32_t index = tensor_map_index(*bytes, at);
      if (index >= recording_.tensor_maps.size())
        return bad_input("recording: a tensor map that was never encoded is used");
      PlanTensorMap map = recording_.tensor_maps[index];
      if (in_setup) map.address = rebased(map.address);
      auto [entry, fresh] = map_numbers_.try_emplace(
          {index, map.address}, static_cast<uint32_t>(plan.tensor_maps.size()));
      if (fresh) plan.tensor_maps.push_back(map);
      std::memcpy(bytes->data() + at + kTensorMapMagic.size(), &entry->second,
                  sizeof entry->second);
    }
    return {};
  }

  const Request& request_;
  const Recording& recording_;
  Places places_;
  OrderedCall ordered_[kCalls];
  CallView views_[kCalls];
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> map_numbers_;
};

}  // namespace

Result<std::variant<LaunchPlan, NoPlan>> reduce(const Request& request,
                                                const Recording& recording) {
  PTXB_CHECK(recording.ending == Ending::Complete && recording.calls.size() == kCalls);
  PTXB_TRY(Places places, Places::make(request, recording));
  return Reducer(request, recording, std::move(places)).run();
}

}  // namespace ptxb::shim
