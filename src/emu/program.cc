// Owns the loading of a plan's modules: parsing, module variables and their addresses, which
// functions a kernel reaches, the layout of shared and local memory. Never executes and never
// looks at an instruction's meaning.
// SPDX-License-Identifier: Apache-2.0
#include "emu/program.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "emu/decode.h"
#include "ptx/parse.h"

namespace ptxb::emu {

Program::Program(std::unique_ptr<State> state) : state_(std::move(state)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

namespace {

using ptx::Opcode;
using ptx::Operand;
using ptx::Space;

constexpr uint64_t kFunctionWindow = 0x2a00'0000'0000;
constexpr uint64_t kVariableGap =
    4096;  // between module variables: an overrun is not another variable
constexpr uint64_t kVariableLimit = uint64_t{4} << 30;
constexpr uint32_t kFrameAlignment = 16;

uint32_t align_up(uint32_t value, uint32_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

// Names that an instruction mentions.
void collect_symbols(const Operand& operand, std::set<std::string>& out) {
  if (operand.kind == Operand::Kind::Symbol) out.insert(operand.symbol);
  for (const Operand& element : operand.elements) collect_symbols(element, out);
}

// Everything of a module that a kernel can reach.
struct Reach {
  std::vector<const ptx::Function*> functions;  // the kernel first
  std::set<std::string> symbols;
};

Reach find_reach(const ptx::Module& module, const ptx::Function& kernel) {
  Reach reach;
  reach.functions.push_back(&kernel);
  std::set<std::string> seen_functions{kernel.name};
  auto add_function = [&](const std::string& name) {
    const ptx::Function* f = module.find(name);
    if (f && !f->is_declaration && !f->is_entry && seen_functions.insert(f->name).second)
      reach.functions.push_back(f);
  };
  // A variable that is reached brings what its initialiser points to.
  std::function<void(const std::string&)> add_symbol = [&](const std::string& name) {
    if (!reach.symbols.insert(name).second) return;
    add_function(name);
    if (const ptx::Variable* variable = module.variable(name))
      for (const auto& relocation : variable->relocations) add_symbol(relocation.symbol);
  };
  for (size_t k = 0; k < reach.functions.size(); ++k) {
    const ptx::Function& f = *reach.functions[k];
    std::set<std::string> mentioned;
    for (const ptx::Instruction& in : f.body)
      for (const Operand& operand : in.operands) collect_symbols(operand, mentioned);
    for (const ptx::BranchTable& table : f.tables)
      for (const std::string& name : table.functions) mentioned.insert(name);
    for (const std::string& name : mentioned) add_symbol(name);
  }
  return reach;
}

struct SharedLayout {
  std::map<std::string, uint32_t, std::less<>> module_scope;
  std::map<std::string, std::map<std::string, uint32_t, std::less<>>> of_function;
  uint32_t static_end = kSharedBase;
  uint32_t dynamic_offset = kSharedBase;
};

Result<SharedLayout> lay_out_shared(const ptx::Module& module, const Reach& reach) {
  SharedLayout layout;
  uint64_t at = kSharedBase;
  uint32_t dynamic_alignment = 16;
  auto place = [&](const ptx::Variable& v) {
    if (v.is_extern_array) {
      dynamic_alignment = std::max(dynamic_alignment, v.alignment_bytes);
      return uint32_t{0};
    }
    at = align_up(static_cast<uint32_t>(at), v.alignment_bytes);
    uint32_t mine = static_cast<uint32_t>(at);
    at = std::min<uint64_t>(at + v.size_bytes, 1u << 24);
    return mine;
  };
  std::vector<uint32_t*> dynamic;
  for (const ptx::Variable& v : module.variables) {
    if (v.space != Space::Shared || !reach.symbols.count(v.name)) continue;
    uint32_t& slot = layout.module_scope[v.name];
    slot = place(v);
    if (v.is_extern_array) dynamic.push_back(&slot);
  }
  for (const ptx::Function* f : reach.functions) {
    for (const ptx::Variable& v : f->locals) {
      if (v.space != Space::Shared) continue;
      uint32_t& slot = layout.of_function[f->name][v.name];
      slot = place(v);
      if (v.is_extern_array) dynamic.push_back(&slot);
    }
  }
  if (at >= 1u << 24)
    return limit_error(reach.functions[0]->name + ": more than 16 MiB of shared variables");
  layout.static_end = static_cast<uint32_t>(at);
  layout.dynamic_offset = align_up(layout.static_end, dynamic_alignment);
  for (uint32_t* slot : dynamic) *slot = layout.dynamic_offset;
  return layout;
}

// Stack frame of a function: parameters and return values at its begin (device functions), then its
// own variables.
Result<void> lay_out_frame(const ptx::Function& f, Code& code, Symbols& symbols) {
  uint64_t at = 0;
  auto place = [&](const ptx::Variable& v) {
    at = align_up(static_cast<uint32_t>(at), std::max(v.alignment_bytes, 1u));
    uint32_t mine = static_cast<uint32_t>(at);
    at = std::min<uint64_t>(at + v.size_bytes, 1u << 30);
    symbols.local[v.name] = mine;
    return std::pair(mine, static_cast<uint32_t>(v.size_bytes));
  };
  if (f.is_entry) {
    std::vector<ptx::ParamPlace> places = ptx::param_layout(f);
    for (size_t k = 0; k < places.size(); ++k) {
      symbols.params[f.params[k].name] = places[k].offset_bytes;
      code.param_bytes = std::max(code.param_bytes, places[k].offset_bytes + places[k].size_bytes);
    }
  } else {
    for (const ptx::Variable& v : f.params) code.param_copies.push_back(place(v));
    for (const ptx::Variable& v : f.returns) code.return_places.push_back(place(v));
  }
  for (const ptx::Variable& v : f.locals)
    if (v.space == Space::Local || v.space == Space::Param) place(v);
  if (at > (512u << 10)) return limit_error(f.name + ": more than 512 KiB of local variables");
  code.local_bytes = align_up(static_cast<uint32_t>(at), kFrameAlignment);
  return {};
}

// The deepest stack below each function; 0 when there is no bound.
uint32_t deepest(const DecodedKernel& kernel, const Code& code,
                 std::map<const Code*, uint32_t>& known, bool& bounded) {
  constexpr uint32_t kOnPath = 0xffffffffu;
  auto [slot, fresh] = known.emplace(&code, kOnPath);
  if (!fresh) {
    if (slot->second == kOnPath) bounded = false;
    return bounded ? slot->second : 0;
  }
  uint32_t most = 0;
  for (const ptx::Instruction& in : code.function->body) {
    if (in.opcode != Opcode::Call) continue;
    if (in.operands.size() < 2 || in.operands[1].kind != Operand::Kind::Symbol) {
      bounded = false;
      continue;
    }
    const ptx::Function* callee = code.module->find(in.operands[1].symbol);
    auto found = callee ? kernel.functions.find(callee->name) : kernel.functions.end();
    if (found != kernel.functions.end())
      most = std::max(most, deepest(kernel, *found->second, known, bounded));
  }
  return known[&code] = most + code.local_bytes;
}

Result<std::unique_ptr<DecodedKernel>> decode_kernel(const Program::State& program,
                                                     uint32_t module_index, const std::string& name,
                                                     Flavour flavour) {
  const ptx::Module& module = *program.modules[module_index];
  const ptx::Function* entry = module.find(name);
  if (!entry || !entry->is_entry || entry->is_declaration)
    return bad_input("module " + std::to_string(module_index) + " has no kernel " + name);
  auto kernel = std::make_unique<DecodedKernel>();
  kernel->module = module_index;
  Reach reach = find_reach(module, *entry);
  PTXB_TRY(SharedLayout shared, lay_out_shared(module, reach));
  std::vector<Symbols> symbols(reach.functions.size());
  for (size_t k = 0; k < reach.functions.size(); ++k) {
    const ptx::Function& f = *reach.functions[k];
    auto code = std::make_unique<Code>();
    code->module = &module;
    code->function = &f;
    code->module_index = module_index;
    symbols[k].program = &program;
    symbols[k].module = module_index;
    symbols[k].shared = shared.module_scope;
    if (auto own = shared.of_function.find(f.name); own != shared.of_function.end())
      for (const auto& [variable, offset] : own->second) symbols[k].shared[variable] = offset;
    PTXB_CHECK_OK(lay_out_frame(f, *code, symbols[k]));
    if (auto address = program.function_addresses.find({module_index, f.name});
        address != program.function_addresses.end())
      kernel->by_address[address->second] = code.get();
    kernel->functions[f.name] = std::move(code);
  }
  for (size_t k = 0; k < reach.functions.size(); ++k) {
    Code& code = *kernel->functions[reach.functions[k]->name];
    Decoder decoder(code, *kernel, symbols[k], flavour);
    PTXB_CHECK_OK(decoder.run());
  }
  Code& code = *kernel->functions[entry->name];
  code.static_shared_bytes = shared.static_end - kSharedBase;
  code.dynamic_shared_offset = shared.dynamic_offset;
  bool bounded = true;
  std::map<const Code*, uint32_t> known;
  code.stack_bytes = deepest(*kernel, code, known, bounded);
  code.has_calls = reach.functions.size() > 1;
  if (!bounded) code.stack_bytes = 0;
  kernel->entry = &code;
  kernel->unbounded_stack = !bounded;
  return kernel;
}

// Addresses of module variables: what the host was given, else the module window.
Result<void> place_variables(const LaunchPlan& plan, Program::State& state) {
  uint64_t next = kModuleWindow;
  uint64_t total = 0;
  for (uint32_t m = 0; m < state.modules.size(); ++m) {
    if (!state.modules[m]) continue;
    for (const ptx::Variable& v : state.modules[m]->variables) {
      if (v.space != Space::Global && v.space != Space::Const) continue;
      if (v.is_extern || v.is_extern_array) continue;
      ModuleVariable variable;
      variable.module = m;
      variable.name = v.name;
      variable.size_bytes = v.size_bytes;
      variable.constant = v.space == Space::Const;
      variable.bytes = v.initial;
      if ((total += v.size_bytes) > kVariableLimit)
        return limit_error("module variables of more than 4 GiB");
      for (const PlanSymbol& symbol : plan.symbols) {
        if (symbol.module == m && symbol.name == v.name) variable.address = symbol.address;
      }
      if (variable.address == 0) {
        uint64_t alignment = std::max<uint64_t>(v.alignment_bytes, 256);
        next = round_up(next, alignment);
        variable.address = next;
        next += v.size_bytes + kVariableGap;
      }
      state.variable_index[{m, v.name}] = state.variables.size();
      state.variables.push_back(std::move(variable));
    }
    uint64_t index = 0;
    for (const ptx::Function& f : state.modules[m]->functions)
      state.function_addresses.emplace(std::pair(m, f.name),
                                       kFunctionWindow + (uint64_t{m} << 32) + 16 * ++index);
  }
  return {};
}

Result<void> relocate_variables(Program::State& state) {
  for (ModuleVariable& variable : state.variables) {
    const ptx::Variable* source = state.modules[variable.module]->variable(variable.name);
    if (!source || source->relocations.empty()) continue;
    variable.bytes.resize(variable.size_bytes);
    for (const auto& relocation : source->relocations) {
      uint64_t address = 0;
      auto target = state.variable_index.find({variable.module, relocation.symbol});
      const ptx::Function* f = state.modules[variable.module]->find(relocation.symbol);
      if (target != state.variable_index.end()) {
        address = state.variables[target->second].address;
      } else if (f) {
        address = state.function_addresses[{variable.module, f->name}];
      } else {
        return unsupported("PTX line " + std::to_string(source->line) + ": the initialiser of " +
                           variable.name + " names " + relocation.symbol +
                           ", which is not a variable or function of the module");
      }
      address += static_cast<uint64_t>(relocation.addend);
      if (relocation.offset + 8 > variable.bytes.size())
        return bad_input(variable.name + ": initialiser outside the variable");
      std::memcpy(variable.bytes.data() + relocation.offset, &address, 8);
    }
  }
  return {};
}

}  // namespace

Result<const DecodedProgram*> Program::State::code(Flavour flavour) const {
  std::lock_guard hold(decode_lock);
  std::unique_ptr<DecodedProgram>& slot = decoded[static_cast<size_t>(flavour)];
  if (slot) return slot.get();
  auto program = std::make_unique<DecodedProgram>();
  for (const auto& [module, name] : kernels) {
    PTXB_TRY(std::unique_ptr<DecodedKernel> kernel, decode_kernel(*this, module, name, flavour));
    (*program)[{module, name}] = std::move(kernel);
  }
  slot = std::move(program);
  return slot.get();
}

Result<Program> Program::load(const LaunchPlan& plan) {
  auto state = std::make_unique<State>();
  state->arch = plan.arch;
  std::set<std::pair<uint32_t, std::string>> wanted;
  for (const auto* list : {&plan.setup, &plan.steady}) {
    for (const PlanOperation& operation : *list) {
      const auto* launch = std::get_if<KernelLaunch>(&operation.action);
      if (!launch) continue;
      if (launch->module >= plan.modules.size())
        return bad_input("launch of a kernel of module " + std::to_string(launch->module) +
                         ", which the plan does not have");
      if (wanted.emplace(launch->module, launch->kernel).second)
        state->kernels.emplace_back(launch->module, launch->kernel);
    }
  }
  for (uint32_t m = 0; m < plan.modules.size(); ++m) {
    bool used = std::any_of(state->kernels.begin(), state->kernels.end(),
                            [&](const auto& k) { return k.first == m; });
    bool named = std::any_of(plan.symbols.begin(), plan.symbols.end(),
                             [&](const auto& s) { return s.module == m; });
    if (plan.modules[m].ptx.empty()) {
      if (used)
        return unsupported("module " + plan.modules[m].name +
                           " has no PTX: the emulator executes PTX");
      state->modules.push_back(nullptr);
      continue;
    }
    if (!used && !named) {
      state->modules.push_back(nullptr);
      continue;
    }
    PTXB_TRY(ptx::Module module, ptx::parse(plan.modules[m].ptx, plan.modules[m].name + ".ptx"));
    state->modules.push_back(std::make_unique<ptx::Module>(std::move(module)));
  }
  PTXB_CHECK_OK(place_variables(plan, *state));
  PTXB_CHECK_OK(relocate_variables(*state));
  // Refusals belong to loading: decode now.
  PTXB_CHECK_OK(state->code(Flavour::Plain));
  return Program(std::move(state));
}

}  // namespace ptxb::emu
