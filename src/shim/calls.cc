// SPDX-License-Identifier: Apache-2.0
#include "shim/calls.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "model/strict_json.h"

namespace ptxb::shim {

namespace {

using Difference = std::optional<std::string>;

uint64_t word_at(std::span<const uint8_t> bytes, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

bool is_window(uint64_t word) { return word >= kWindowBegin && word < kWindowEnd; }

std::string dim_text(const Dim3& d) {
  return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

class Comparer {
 public:
  Comparer(const Request& request, const Recording& recording, const Places& places,
           const CallView& first, const CallView& second)
      : request_(request), recording_(recording), places_(places), first_(first), second_(second) {}

  Difference run() {
    const auto &a = first_.work->work, &b = second_.work->work;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      where_ = work_name(*first_.work, i);
      if (a[i].action.index() != b[i].action.index()) {
        return "operation " + std::to_string(i) + " is a " + kind_text(a[i].action) + " in call " +
               call_text(first_) + " and a " + kind_text(b[i].action) + " in call " +
               call_text(second_);
      }
      Difference d = std::visit(
          [&](const auto& one) {
            return compare(one, std::get<std::decay_t<decltype(one)>>(b[i].action));
          },
          a[i].action);
      if (d) return d;
      if (a[i].stream != b[i].stream || a[i].after != b[i].after)
        return where_ + " is ordered differently";
    }
    if (a.size() != b.size()) {
      return "call " + call_text(first_) + " makes " + std::to_string(a.size()) +
             " operations and call " + call_text(second_) + " makes " + std::to_string(b.size());
    }
    return std::nullopt;
  }

 private:
  static std::string call_text(const CallView& view) { return std::to_string(view.call); }
  static const char* kind_text(const PlanAction& action) {
    constexpr const char* kKinds[] = {"kernel launch", "memset", "device copy",
                                      "copy from the host"};
    return kKinds[action.index()];
  }

  // An argument of another call than the one that uses it.
  bool is_stale(uint64_t address, const CallView& view) const {
    std::optional<Place> place = places_.find(address);
    return place && place->kind == Place::Kind::Argument && place->call != view.call;
  }

  // Both addresses mean the same thing in their calls.
  bool same_place(uint64_t a, uint64_t b) const {
    std::optional<Place> pa = places_.find(a), pb = places_.find(b);
    if (a == b) return !is_stale(a, first_) && !is_stale(b, second_);
    if (!pa || !pb || pa->kind != pb->kind || a - pa->base != b - pb->base) return false;
    if (pa->kind == Place::Kind::Argument) {
      return pa->index == pb->index && pa->call == first_.call && pb->call == second_.call;
    }
    if (pa->kind != Place::Kind::Allocation) return false;
    auto ordinal = [](const CallView& view, uint32_t allocation) {
      return std::find(view.allocations.begin(), view.allocations.end(), allocation) -
             view.allocations.begin();
    };
    ptrdiff_t oa = ordinal(first_, pa->index), ob = ordinal(second_, pb->index);
    return oa == ob && oa < std::ssize(first_.allocations) &&
           ob < std::ssize(second_.allocations) &&
           recording_.allocations[pa->index].size_bytes ==
               recording_.allocations[pb->index].size_bytes;
  }

  Difference address(uint64_t a, uint64_t b, const char* what) const {
    if (same_place(a, b)) return std::nullopt;
    return stale_text(a, b, std::string(what))
        .value_or(where_ + ": the " + what + " is " + places_.describe(a) + " in call " +
                  call_text(first_) + " and " + places_.describe(b) + " in call " +
                  call_text(second_));
  }

  Difference stale_text(uint64_t a, uint64_t b, const std::string& what) const {
    const CallView* view = is_stale(b, second_)  ? &second_
                           : is_stale(a, first_) ? &first_
                                                 : nullptr;
    if (!view) return std::nullopt;
    return where_ + ": the " + what + " of call " + call_text(*view) + " is " +
           places_.describe(view == &second_ ? b : a) + " (a pointer kept from an earlier call)";
  }

  Difference number(uint64_t a, uint64_t b, const char* what) const {
    if (a == b) return std::nullopt;
    return where_ + ": the " + what + " is " + std::to_string(a) + " in call " + call_text(first_) +
           " and " + std::to_string(b) + " in call " + call_text(second_);
  }

  Difference map(uint32_t a, uint32_t b, const std::string& what) const {
    if (a >= recording_.tensor_maps.size() || b >= recording_.tensor_maps.size()) {
      return where_ + ": " + what + " names a tensor map that was never encoded";
    }
    PlanTensorMap ma = recording_.tensor_maps[a], mb = recording_.tensor_maps[b];
    if (!same_place(ma.address, mb.address)) {
      return stale_text(ma.address, mb.address, "tensor map in " + what)
          .value_or(where_ + ": the tensor map in " + what + " covers " +
                    places_.describe(ma.address) + " in call " + call_text(first_) + " and " +
                    places_.describe(mb.address) + " in call " + call_text(second_));
    }
    bool same = ma.dtype == mb.dtype && ma.rank == mb.rank && ma.dims == mb.dims &&
                ma.strides_bytes == mb.strides_bytes && ma.box == mb.box &&
                ma.element_strides == mb.element_strides && ma.interleave == mb.interleave &&
                ma.swizzle == mb.swizzle && ma.l2_promotion == mb.l2_promotion &&
                ma.oob_fill == mb.oob_fill;
    if (same) return std::nullopt;
    return where_ + ": the tensor map in " + what + " has another shape or mode in call " +
           call_text(second_);
  }

  // Bytes that kernels will read: equal, or pointers and tensor maps that mean the same.
  Difference bytes(std::span<const uint8_t> a, std::span<const uint8_t> b, uint64_t alignment_of_a,
                   const std::string& what, const KernelInfo* kernel) const {
    if (a.size() != b.size()) return number(a.size(), b.size(), "size");
    std::vector<size_t> images = tensor_map_images(a, alignment_of_a);
    if (images != tensor_map_images(b, alignment_of_a))
      return where_ + ": " + what + " holds tensor maps in one call only";
    size_t next_image = 0;
    for (size_t i = 0; i < a.size();) {
      if (next_image < images.size() && images[next_image] == i) {
        if (Difference d = map(tensor_map_index(a, i), tensor_map_index(b, i),
                               what + " byte " + std::to_string(i)))
          return d;
        i += kTensorMapBytes;
        ++next_image;
        continue;
      }
      if (a[i] == b[i]) {
        if (i % 4 == 0 && i + 8 <= a.size() && is_window(word_at(a, i)) &&
            word_at(a, i) == word_at(b, i) && !same_place(word_at(a, i), word_at(b, i))) {
          return stale_text(word_at(a, i), word_at(b, i),
                            "pointer at " + what + " byte " + std::to_string(i));
        }
        ++i;
        continue;
      }
      std::optional<size_t> end = pointer_around(a, b, i);
      if (!end) return bytes_text(a, b, i, what, kernel);
      i = *end;
    }
    return std::nullopt;
  }

  // The end of a pair of pointers that explains the differing byte i.
  std::optional<size_t> pointer_around(std::span<const uint8_t> a, std::span<const uint8_t> b,
                                       size_t i) const {
    for (size_t begin = i >= 7 ? i - 7 : 0; begin <= i && begin + 8 <= a.size(); ++begin) {
      uint64_t wa = word_at(a, begin), wb = word_at(b, begin);
      if (wa != wb && places_.find(wa) && places_.find(wb) && same_place(wa, wb)) return begin + 8;
    }
    return std::nullopt;
  }

  std::string bytes_text(std::span<const uint8_t> a, std::span<const uint8_t> b, size_t i,
                         const std::string& what, const KernelInfo* kernel) const {
    size_t begin = i, length = std::min<size_t>(8, a.size() - i);
    std::string place = what + " byte " + std::to_string(i);
    if (kernel) {
      for (size_t p = 0; p < kernel->params.size(); ++p) {
        const KernelParam& param = kernel->params[p];
        if (i < param.offset_bytes || i >= param.offset_bytes + param.size_bytes) continue;
        begin = param.size_bytes <= 8 ? param.offset_bytes
                                      : param.offset_bytes + (i - param.offset_bytes) / 8 * 8;
        length = std::min<size_t>(8, param.offset_bytes + param.size_bytes - begin);
        place = "parameter " + std::to_string(p) +
                (param.size_bytes > 8 ? " (byte " + std::to_string(begin - param.offset_bytes) + ")"
                                      : "");
      }
    }
    auto text = [&](std::span<const uint8_t> from) {
      uint64_t value = 0;
      std::memcpy(&value, from.data() + begin, length);
      return places_.find(value) ? places_.describe(value) : hex_address(value);
    };
    return where_ + ": " + place + " is " + text(a) + " in call " + call_text(first_) + " and " +
           text(b) + " in call " + call_text(second_) + "; the arguments do not explain it";
  }

  Difference compare(const KernelLaunch& a, const KernelLaunch& b) const {
    if (a.module != b.module || a.kernel != b.kernel) {
      return where_ + " launches kernel " + printable(b.kernel, 200) + " in call " +
             call_text(second_);
    }
    auto dims = [&](const Dim3& da, const Dim3& db, const char* what) -> Difference {
      if (da == db) return std::nullopt;
      return where_ + ": the " + what + " is " + dim_text(da) + " in call " + call_text(first_) +
             " and " + dim_text(db) + " in call " + call_text(second_);
    };
    if (Difference d = dims(a.grid, b.grid, "grid")) return d;
    if (Difference d = dims(a.block, b.block, "block")) return d;
    if (Difference d = dims(a.cluster, b.cluster, "cluster")) return d;
    if (Difference d =
            number(a.dynamic_shared_bytes, b.dynamic_shared_bytes, "dynamic shared memory"))
      return d;
    if (a.cooperative != b.cooperative ||
        a.programmatic_serialization != b.programmatic_serialization) {
      return where_ + " has other launch attributes in call " + call_text(second_);
    }
    return bytes(a.params, b.params, 0, "the parameter block", kernel_of(a));
  }
  Difference compare(const Memset& a, const Memset& b) const {
    if (Difference d = address(a.address, b.address, "address")) return d;
    if (Difference d = number(a.value, b.value, "value")) return d;
    if (Difference d = number(a.element_bytes, b.element_bytes, "element size")) return d;
    if (Difference d = number(a.width_elements, b.width_elements, "width")) return d;
    if (Difference d = number(a.height, b.height, "height")) return d;
    return number(a.pitch_bytes, b.pitch_bytes, "pitch");
  }
  Difference compare(const CopyDevice& a, const CopyDevice& b) const {
    if (Difference d = address(a.destination, b.destination, "destination")) return d;
    if (Difference d = address(a.source, b.source, "source")) return d;
    if (Difference d = number(a.width_bytes, b.width_bytes, "width")) return d;
    if (Difference d = number(a.height, b.height, "height")) return d;
    if (Difference d =
            number(a.destination_pitch_bytes, b.destination_pitch_bytes, "destination pitch"))
      return d;
    return number(a.source_pitch_bytes, b.source_pitch_bytes, "source pitch");
  }
  Difference compare(const WriteBytes& a, const WriteBytes& b) const {
    if (Difference d = address(a.address, b.address, "address")) return d;
    return bytes(a.bytes, b.bytes, a.address, "the copied data", nullptr);
  }

  const KernelInfo* kernel_of(const KernelLaunch& launch) const {
    const std::vector<KernelInfo>* kernels = &request_.kernels;
    if (launch.module > recording_.modules.size()) return nullptr;
    if (launch.module > 0) kernels = &recording_.modules[launch.module - 1].kernels;
    for (const KernelInfo& kernel : *kernels) {
      if (kernel.name == launch.kernel) return &kernel;
    }
    return nullptr;
  }

  const Request& request_;
  const Recording& recording_;
  const Places& places_;
  const CallView &first_, &second_;
  std::string where_;
};

}  // namespace

std::vector<uint32_t> allocations_of(const std::vector<Step>& steps) {
  std::vector<uint32_t> out;
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::Allocate) out.push_back(step.allocation);
  }
  return out;
}

std::optional<std::string> difference(const Request& request, const Recording& recording,
                                      const Places& places, const CallView& first,
                                      const CallView& second) {
  return Comparer(request, recording, places, first, second).run();
}

std::string work_name(const OrderedCall& call, size_t index) {
  const PlanAction& action = call.work[index].action;
  std::string out = "operation " + std::to_string(index) + " (";
  if (auto* launch = std::get_if<KernelLaunch>(&action))
    out += "launch of " + printable(launch->kernel, 200);
  else if (std::holds_alternative<Memset>(action))
    out += "memset";
  else if (std::holds_alternative<CopyDevice>(action))
    out += "device copy";
  else
    out += "copy from the host";
  return out + ")";
}

const char* stream_text(StreamKind kind) {
  switch (kind) {
    case StreamKind::Caller:
      return "the caller's stream";
    case StreamKind::Legacy:
      return "the legacy default stream";
    case StreamKind::PerThread:
      return "the per-thread default stream";
    case StreamKind::Blocking:
      return "a stream of its own";
    case StreamKind::NonBlocking:
      return "a non-blocking stream of its own";
  }
  return "a stream";
}

}  // namespace ptxb::shim
