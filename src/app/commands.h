// Owns the list of subcommands; each takes the parsed options, prints, and gives the exit code. Errors are printed by main.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/options.h"
#include "app/terminal.h"
#include "base/json.h"
#include "base/result.h"
#include "task/load.h"

namespace ptxb::app {

Result<int> run_doctor(const Options& options, const Terminal& terminal);
Result<int> run_tasks(const Options& options, const Terminal& terminal);
Result<int> run_eval(const Options& options, const Terminal& terminal);
Result<int> run_plan(const Options& options, const Terminal& terminal);
Result<int> run_plan_show(const Options& options, const Terminal& terminal);
Result<int> run_replay(const Options& options, const Terminal& terminal);
Result<int> run_check(const Options& options, const Terminal& terminal);
Result<int> run_selftest(const Options& options, const Terminal& terminal);

// --dataset DIR, else the tasks that come with the program.
Result<Dataset> open_dataset(const Options& options);
// "-" is standard output; a file is written whole or not at all.
Result<void> write_json(const std::string& where, const Json& json, const Terminal& terminal);

}  // namespace ptxb::app
