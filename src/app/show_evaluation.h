// Owns how an Evaluation reads on a terminal: a small aligned table of gates, the verdict, the evidence.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/terminal.h"
#include "model/evaluation.h"

namespace ptxb::app {

std::string show(const Evaluation& evaluation, const Terminal& terminal);
// "file.cu:12: race: message (hint)" lines, as a compiler would print them.
std::string show_findings(const std::vector<Finding>& findings, const Terminal& terminal);

}  // namespace ptxb::app
