#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/text.h"
#include "commands.h"
#include "loop.h"
#include "train.h"

namespace {

// The commands that the words of the command line name, outermost first; `unknown` is the first word that should name
// one and does not.
std::vector<const CLI::App*> NamedCommands(const CLI::App& app, int argc, char** argv, std::string* unknown) {
  std::vector<const CLI::App*> chain = {&app};
  for (int i = 1; i < argc && !chain.back()->get_subcommands({}).empty(); ++i) {
    const std::string word = argv[i];
    if (word == "--data-dir" || word == "--json") ++i;
    if (word.empty() || word[0] == '-') continue;
    const std::vector<const CLI::App*> commands = chain.back()->get_subcommands({});
    const auto named = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* command) { return command->get_name() == word; });
    if (named == commands.end()) {
      *unknown = word;
      break;
    }
    chain.push_back(*named);
  }
  return chain;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// What CLI11 found, with the nearest known name where a word or an option is not one.
int ReportUsage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::string message = error.what();
  std::string unknown;
  const std::vector<const CLI::App*> chain = NamedCommands(app, argc, argv, &unknown);
  const std::vector<std::string> commands = CommandNames(*chain.back());
  if (!unknown.empty()) {
    message = "'" + unknown.substr(0, 80) + "' is not a command" + portolan::DidYouMean(unknown, commands) +
              "; known: " + portolan::Join(commands, ", ");
  } else if (!commands.empty()) {
    message = "a command is required: " + portolan::Join(commands, ", ");
  }
  // A missing argument, with what it is and all that the command takes.
  std::string arguments;
  const CLI::Option* missing = nullptr;
  for (const CLI::Option* option : chain.back()->get_options()) {
    if (option->get_positional()) arguments += " " + option->get_name();
    if (message == option->get_name() + " is required") missing = option;
  }
  if (missing != nullptr && missing->get_positional()) {
    std::string names;
    for (const CLI::App* command : chain) names += (names.empty() ? "" : " ") + command->get_name();
    message += " (" + missing->get_description() + "): " + names + arguments;
  }
  std::vector<std::string> options;
  for (const CLI::App* command : chain) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    }
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = portolan::Split(argv[i], '=').front();
    if (word.size() < 3 || word.compare(0, 2, "--") != 0) continue;
    if (std::find(options.begin(), options.end(), word) != options.end()) continue;
    message = "unknown option '" + word.substr(0, 80) + "'" + portolan::DidYouMean(word, options) +
              "; known: " + portolan::Join(options, ", ");
    break;
  }
  std::fprintf(stderr, "portolan: %s\nRun with --help for more information.\n", message.c_str());
  return portolan::ExitCode(portolan::ErrorCode::kUsage);
}

// Output that went nowhere (a full disk, a closed pipe) is not an answer.
int CheckOutput(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return portolan::ReportError(
      {portolan::ErrorCode::kIo, std::string("cannot be written: ") + std::strerror(errno), "standard output", 0, {}});
}

}  // namespace

int main(int argc, char** argv) {
  portolan::SettleThreadsFor(argc, argv);
  CLI::App app{
      "Portolan takes recommendation-model training from one accelerator to another.\n"
      "Numbers are predictions from hardware facts; `portolan validate` shows how far\n"
      "they are from published steps."};
  app.name("portolan");
  app.require_subcommand(1);
  app.set_version_flag("--version", PORTOLAN_VERSION, "Print the version and exit");
  portolan::GlobalOptions global;
  app.add_option("--data-dir", global.data_dirs,
                 portolan::HelpText("Your own accelerators/, fabrics/, models/, recipes/ or validation/, or one "
                                    "hardware file; may be repeated, later ones win"))
      ->type_name("PATH")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--json", global.json_path,
                 portolan::HelpText("Also write the answer as JSON; '-': to standard output, instead of the text"))
      ->type_name("FILE");
  app.footer("Exit codes: 0 answer, 1 failed check (validate), 2 wrong input, 3 input/output.");
  app.fallthrough();

  int exit_code = 0;
  portolan::AddEstimateCommand(app, global, &exit_code);
  portolan::AddPlanCommand(app, global, &exit_code);
  portolan::AddValidateCommand(app, global, &exit_code);
  portolan::AddSelectCommand(app, global, &exit_code);
  portolan::AddRegretCommand(app, global, &exit_code);
  portolan::AddHwCommand(app, global, &exit_code);
  portolan::AddPortCommand(app, global, &exit_code);
  portolan::AddAuditCommand(app, global, &exit_code);
  portolan::AddVerifyCommand(app, global, &exit_code);
  portolan::AddTrainCommand(app, global, &exit_code);
  portolan::AddCalibrateCommand(app, global, &exit_code);
  portolan::AddOptimizeCommand(app, global, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return CheckOutput(app.exit(request));
  } catch (const CLI::ParseError& error) {
    return ReportUsage(app, error, argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "portolan: internal error: %s\n", error.what());
    return 70;
  }
  return CheckOutput(exit_code);
}
