// Owns vprintf and __assertfail. Output is evidence, kept within bounds; never shown by this room.
// SPDX-License-Identifier: Apache-2.0
#include "emu/device_functions.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emu/address.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Operand;

namespace {

constexpr size_t kLines = 1000, kLineBytes = 1024;

// A zero-terminated string of the device, cut at kLineBytes.
std::string device_string(Warp& w, uint32_t lane, uint64_t address) {
  std::string text;
  while (text.size() < kLineBytes) {
    const uint8_t* at =
        resolve_quietly(w, lane, Window::Generic, address + text.size(), 1, Access::Read);
    if (!at || *at == 0) break;
    text.push_back(static_cast<char>(*at));
  }
  return text;
}

class Arguments {
 public:
  Arguments(Warp& w, uint32_t lane, uint64_t buffer) : w_(w), lane_(lane), at_(buffer) {}
  uint64_t take(uint64_t bytes) {
    at_ = (at_ + bytes - 1) / bytes * bytes;
    uint64_t value = 0;
    if (const uint8_t* from = resolve_quietly(w_, lane_, Window::Generic, at_,
                                              static_cast<uint32_t>(bytes), Access::Read))
      std::memcpy(&value, from, bytes);
    at_ += bytes;
    return value;
  }

 private:
  Warp& w_;
  uint32_t lane_;
  uint64_t at_;
};

std::string with_format(std::string spec, uint64_t value, bool wide) {
  char text[512];
  char kind = spec.back();
  int length = 0;
  if (std::strchr("fFeEgGaA", kind)) {
    length = std::snprintf(text, sizeof text, spec.c_str(), std::bit_cast<double>(value));
  } else if (kind == 'c') {
    length = std::snprintf(text, sizeof text, spec.c_str(), static_cast<int>(value));
  } else {
    spec.insert(spec.size() - 1, "ll");
    if (!wide)
      value = std::strchr("di", kind)
                  ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(value)))
                  : value & 0xffffffffu;
    length = std::snprintf(text, sizeof text, spec.c_str(), static_cast<unsigned long long>(value));
  }
  return std::string(text,
                     static_cast<size_t>(std::clamp(length, 0, static_cast<int>(sizeof text) - 1)));
}

// The conversions of C; lengths are those of the device (int 32, long 64 bits). Widths are bounded.
std::string formatted(Warp& w, uint32_t lane, const std::string& format, uint64_t buffer) {
  Arguments arguments(w, lane, buffer);
  std::string out;
  for (size_t k = 0; k < format.size() && out.size() < kLineBytes; ++k) {
    if (format[k] != '%') {
      out.push_back(format[k]);
      continue;
    }
    std::string spec = "%";
    bool wide = false;
    for (++k; k < format.size() && std::strchr("-+ #0123456789.*hlLjzt", format[k]); ++k) {
      if (std::strchr("hljztL", format[k])) {
        wide = wide || format[k] != 'h';
      } else if (format[k] == '*') {
        spec += std::to_string(std::clamp(static_cast<int32_t>(arguments.take(4)), -100, 100));
      } else if (spec.size() < 8) {
        spec.push_back(format[k]);
      }
    }
    if (k >= format.size()) break;
    char kind = format[k];
    if (kind == '%') {
      out.push_back('%');
    } else if (kind == 's') {
      out += device_string(w, lane, arguments.take(8));
    } else if (kind == 'p') {
      out += hex_text(arguments.take(8));
    } else if (std::strchr("fFeEgGaA", kind)) {
      out += with_format(spec + kind, arguments.take(8), true);
    } else if (std::strchr("diuxXoc", kind)) {
      out += with_format(spec + kind, arguments.take(wide ? 8 : 4), wide);
    }
  }
  return out.substr(0, kLineBytes);
}

// Offsets of the call's .param variables in the caller's frame.
struct Call {
  std::vector<uint32_t> arguments;
  uint32_t result = 0;
  bool has_result = false;
};

uint64_t argument(Warp& w, const Call& call, size_t k, uint32_t lane, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(
      &value,
      w.local.data() + uint64_t{lane} * w.local_stride + w.frame().local_base + call.arguments[k],
      bytes);
  return value;
}

const Insn* vprintf_call(Warp& w, const Insn* i) {
  const Call& call = *static_cast<const Call*>(i->more);
  for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    std::string format = device_string(w, lane, argument(w, call, 0, lane, 8));
    std::string text = formatted(w, lane, format, argument(w, call, 1, lane, 8));
    if (!text.empty() && text.back() == '\n') text.pop_back();
    RunState& run = w.worker->run;
    {
      std::lock_guard hold(run.lock);
      if (run.printed.size() < kLines) run.printed.push_back(std::move(text));
    }
    if (!call.has_result) continue;
    uint32_t count = static_cast<uint32_t>(std::count(format.begin(), format.end(), '%'));
    std::memcpy(
        w.local.data() + uint64_t{lane} * w.local_stride + w.frame().local_base + call.result,
        &count, 4);
  }
  return i + 1;
}

const Insn* assertfail_call(Warp& w, const Insn* i) {
  const Call& call = *static_cast<const Call*>(i->more);
  uint32_t lane = static_cast<uint32_t>(std::countr_zero(w.exec));
  std::string message = device_string(w, lane, argument(w, call, 0, lane, 8));
  std::string file = device_string(w, lane, argument(w, call, 1, lane, 8));
  file.erase(0, file.find_last_of('/') + 1);
  std::string line = std::to_string(argument(w, call, 2, lane, 4));
  std::string function = device_string(w, lane, argument(w, call, 3, lane, 8));
  return fault(w, i, FindingKind::AssertFailed,
               thread_text(w, lane) + " fails the assertion \"" + message + "\" at " + file + ":" +
                   line + " in " + function);
}

}  // namespace

bool decode_device_function(Decoder& d, const ptx::Function& function) {
  bool prints = function.name == "vprintf", asserts = function.name == "__assertfail";
  if (!prints && !asserts) {
    if (function.name == "malloc" || function.name == "free")
      return d.refuse("device " + function.name + ": memory must come from the host");
    return d.refuse("call of " + function.name + ", which the module does not define");
  }
  Call call;
  const Operand& arguments = d.operand(2);
  for (const Operand& each : arguments.elements) {
    auto local = d.symbols().local.find(each.symbol);
    if (each.kind != Operand::Kind::Symbol || local == d.symbols().local.end())
      return d.refuse("call arguments that are not .param variables");
    call.arguments.push_back(local->second);
  }
  if (call.arguments.size() != (prints ? 2u : 5u))
    return d.refuse("another number of arguments than " + function.name + " has");
  if (!d.operand(0).elements.empty()) {
    auto local = d.symbols().local.find(d.operand(0).elements[0].symbol);
    if (local == d.symbols().local.end()) return d.refuse("a result that is no .param variable");
    call.result = local->second;
    call.has_result = true;
  }
  d.emit(prints ? vprintf_call : assertfail_call).more = d.keep(std::move(call));
  return true;
}

}  // namespace ptxb::emu
