#include <CLI/CLI.hpp>
#include <exception>

#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Portolan takes recommendation-model training from one accelerator to another.\n"
      "Numbers are predictions from hardware facts; `portolan validate` shows how far\n"
      "they are from published steps."};
  app.name("portolan");
  app.require_subcommand(1);
  app.set_version_flag("--version", PORTOLAN_VERSION);
  portolan::GlobalOptions global;
  app.add_option("--data-dir", global.data_dirs,
                 "Folder with accelerators/, fabrics/, models/, recipes/ or validation/ of your own; repeatable, later "
                 "ones win")
      ->type_name("DIR");
  app.add_option("--json", global.json_path, "Also write the answer as JSON ('-' = standard output)")
      ->type_name("FILE");
  app.fallthrough();

  int exit_code = 0;
  portolan::AddEstimateCommand(app, global, &exit_code);
  portolan::AddValidateCommand(app, global, &exit_code);
  portolan::AddHwCommand(app, global, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return portolan::ExitCode(portolan::ErrorCode::kUsage);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "portolan: internal error: %s\n", error.what());
    return 70;
  }
  return exit_code;
}
