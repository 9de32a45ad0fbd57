// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "app/cli_text.h"
#include "base/text.h"

namespace ptxb::app {

namespace {

// The parser's words for one command line; `options` is filled while CLI11 parses.
struct Parser {
  Options options;
  CLI::App root{"ptxbench"};
  CLI::App *doctor, *tasks, *eval, *plan, *show, *replay, *check, *selftest;
  bool help = false, version = false;
  std::string seed;  // text: CLI11 would wrap a negative number

  Parser() {
    root.set_help_flag();
    root.set_version_flag();
    doctor = command("doctor");
    tasks = command("tasks");
    eval = command("eval");
    plan = command("plan");
    show = command("show", plan);
    replay = command("replay");
    check = command("check");
    selftest = command("selftest");
    root.add_flag("--help,-h", help);
    root.add_flag("--version", version);
    root.add_flag("--no-color", options.no_color);
    for (CLI::App* each : {doctor, tasks, eval, plan, show, replay, check, selftest}) {
      each->add_flag("--help,-h", help);
      each->add_flag("--no-color", options.no_color);
      if (each != plan) each->add_option("--json", options.json)->type_name("FILE");
    }
    tasks->add_option("name", options.source);
    for (CLI::App* each : {eval, plan, check}) {
      each->add_option("source", options.source);
      each->add_option("--task", options.task);
      each->add_option("--workload", options.workload);
      each->add_option("--arch", options.arch);
    }
    for (CLI::App* each : {eval, plan, check, selftest}) {
      each->add_flag("--no-cache", options.no_cache);
      each->add_flag("--allow-weak-sandbox", options.allow_weak_sandbox);
    }
    selftest->add_option("manifest", options.source);
    selftest->add_option("--only", options.only);
    selftest->add_flag("--quickstart", options.quickstart);
    for (CLI::App* each : {eval, plan}) each->add_option("--chip", options.chip);
    for (CLI::App* each : {show, replay}) each->add_option("folder", options.source);
    for (CLI::App* each : {eval, replay, selftest}) {
      each->add_option("--backend", options.backend);
      each->add_option("--profile", options.profile);
      each->add_flag("--quiet", options.quiet);
    }
    for (CLI::App* each : {eval, replay}) each->add_option("--target", options.target);
    for (CLI::App* each : {eval, replay, check, selftest}) {
      each->add_option("--jobs", options.jobs);
      each->add_option("--seed", seed);
    }
    for (CLI::App* each : {tasks, eval, plan, replay, check, selftest}) each->add_option("--dataset", options.dataset);
    plan->add_option("-o,--output", options.output);
    check->add_flag("--parse-only", options.parse_only);
    check->add_option("--sarif", options.sarif);
  }

  CLI::App* command(const char* name, CLI::App* parent = nullptr) {
    CLI::App* made = (parent ? parent : &root)->add_subcommand(name);
    made->set_help_flag();
    return made;
  }

  // The command whose words were given, deepest first.
  std::pair<Command, CLI::App*> chosen() const {
    if (show->parsed()) return {Command::PlanShow, show};
    const std::pair<Command, CLI::App*> all[] = {{Command::Doctor, doctor}, {Command::Tasks, tasks},
                                                 {Command::Eval, eval},     {Command::Plan, plan},
                                                 {Command::Replay, replay}, {Command::Check, check},
                                                 {Command::Selftest, selftest}};
    for (const auto& [command, app] : all) {
      if (app->parsed()) return {command, app};
    }
    return {Command::Help, nullptr};
  }
};

Result<void> demand(const std::string& value, const char* what, const char* command) {
  if (value.empty()) {
    return bad_input(std::string(what) + " is missing; see ptxbench " + command + " --help");
  }
  return {};
}

Result<void> one_of(const std::string& value, const std::vector<std::string>& allowed, const char* option) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return {};
  return bad_input(std::string(option) + " " + printable(value, 60) + ": must be one of " + join(allowed, ", "));
}

// What CLI11 cannot say: which arguments a command cannot do without, and the closed value lists.
Result<void> complete(const Options& o) {
  switch (o.command) {
    case Command::Eval:
      PTXB_CHECK_OK(demand(o.source, "SOURCE", "eval"));
      PTXB_CHECK_OK(demand(o.task, "--task NAME", "eval"));
      break;
    case Command::Plan:
      PTXB_CHECK_OK(demand(o.source, "SOURCE", "plan"));
      PTXB_CHECK_OK(demand(o.task, "--task NAME", "plan"));
      PTXB_CHECK_OK(demand(o.output, "-o DIR", "plan"));
      break;
    case Command::PlanShow:
      PTXB_CHECK_OK(demand(o.source, "DIR", "plan"));
      break;
    case Command::Replay:
      PTXB_CHECK_OK(demand(o.source, "DIR", "replay"));
      break;
    case Command::Check:
      PTXB_CHECK_OK(demand(o.source, "FILE", "check"));
      if (!o.parse_only) PTXB_CHECK_OK(demand(o.task, "--task NAME (or --parse-only)", "check"));
      break;
    default:
      break;
  }
  PTXB_CHECK_OK(one_of(o.arch, {"sm_90a", "sm_100a"}, "--arch"));
  PTXB_CHECK_OK(one_of(o.backend, {"auto", "cuda", "emu"}, "--backend"));
  PTXB_CHECK_OK(one_of(o.profile, {"strict", "quick"}, "--profile"));
  if (!o.chip.empty()) PTXB_CHECK_OK(one_of(o.chip, {"H100", "H200", "B200"}, "--chip"));
  if (o.jobs < 0 || o.jobs > 1024) return bad_input("--jobs must lie between 0 (all cores) and 1024");
  return {};
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& arguments) {
  Parser parser;
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    parser.root.parse(reversed);
  } catch (const CLI::Error& error) {
    if (!parser.help) return bad_input(std::string(error.what()) + "; see ptxbench --help");
  }
  Options options = std::move(parser.options);
  auto [command, app] = parser.chosen();
  options.command = command;
  if (parser.version) options.command = Command::Version;
  if (parser.help || arguments.empty() || options.command == Command::Help) {
    if (!parser.help && !arguments.empty() && options.command == Command::Help) {
      return bad_input("no command given; see ptxbench --help");
    }
    options.topic = app == nullptr ? "" : app == parser.show ? "plan" : app->get_name();
    options.command = Command::Help;
    return options;
  }
  if (!parser.seed.empty()) {
    options.seed = parse_uint(parser.seed);
    if (!options.seed) return bad_input("--seed " + printable(parser.seed, 60) + ": must be a whole number from 0 to 2^64-1");
  }
  PTXB_CHECK_OK(complete(options));
  return options;
}

std::string help_text(const std::string& topic) {
  std::string_view text = kCliText;
  size_t begin = topic.empty() ? 0 : text.find("## ptxbench " + topic);
  if (begin == std::string_view::npos) begin = 0;
  size_t end = text.find("\n## ", begin + 1);
  return std::string(trim(text.substr(begin, end == std::string_view::npos ? end : end - begin))) + "\n";
}

std::vector<std::string> option_names(Command command) {
  Parser parser;
  const std::pair<Command, CLI::App*> all[] = {
      {Command::Doctor, parser.doctor}, {Command::Tasks, parser.tasks},     {Command::Eval, parser.eval},
      {Command::Plan, parser.plan},     {Command::PlanShow, parser.show},   {Command::Replay, parser.replay},
      {Command::Check, parser.check},   {Command::Selftest, parser.selftest}};
  std::vector<std::string> names;
  for (const auto& [each, app] : all) {
    if (each != command) continue;
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ptxb::app
