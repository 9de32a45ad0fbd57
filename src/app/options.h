// Owns the command line: parsed once into one const struct. Help text is docs/cli.md, embedded at build time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptxb::app {

enum class Command { Help, Version, Doctor, Tasks, Eval, Plan, PlanShow, Replay, Check, Selftest };

// One field per option of docs/cli.md; unused ones keep their default.
struct Options {
  Command command = Command::Help;
  std::string topic;  // Help: the command whose section to print, "" for the overview
  std::string source;        // eval, plan, check: file; tasks: name; plan show, replay: folder
  std::string task, workload;
  std::string arch = "sm_90a", chip, backend = "auto", profile = "strict", target = "task";
  std::optional<uint64_t> seed;
  std::string json, sarif, output, dataset, only;
  int jobs = 0;  // 0: all cores
  bool no_cache = false, allow_weak_sandbox = false, quiet = false, no_color = false, parse_only = false, quickstart = false;
};

// Error BadInput: one line that says what is wrong and what would be right.
Result<Options> parse_options(const std::vector<std::string>& arguments);

// docs/cli.md: the whole before the first command for "", else the section "## ptxbench TOPIC".
std::string help_text(const std::string& topic);
// Every "--name" that the parser knows for one command, sorted: tests compare them with the help text.
std::vector<std::string> option_names(Command command);

}  // namespace ptxb::app
