#include "weft/communication/transport/mpi/plugin.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::transport::mpi {
namespace {

namespace fs = std::filesystem;

struct Flavour {
  std::string_view name;     // "openmpi", as in the plugin's file name
  std::string_view library;  // "Open MPI"
  std::string_view package;  // on Debian and derivatives
};
constexpr Flavour kOpenMpi{"openmpi", "Open MPI", "libopenmpi-dev"};
constexpr Flavour kMpich{"mpich", "MPICH", "libmpich-dev"};

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

// hydra and srun's pmi2 set only PMI_RANK; Open MPI's mpirun sets PMIX_RANK beside its own.
const Flavour* launcher() {
  if (is_set("OMPI_COMM_WORLD_RANK")) return &kOpenMpi;
  if (is_set("PMI_RANK")) return &kMpich;
  if (is_set("PMIX_RANK")) return &kOpenMpi;
  return nullptr;
}

const Flavour* find_flavour(std::string_view name) {
  for (const Flavour* flavour : {&kOpenMpi, &kMpich}) {
    if (flavour->name == name) return flavour;
  }
  return nullptr;
}

std::string file_name(const Flavour& flavour) { return fmt::format("weft_mpi_{}.so", flavour.name); }

// The file that contains this code: a program, or libweft.so.
fs::path own_file() {
  Dl_info found{};
  std::error_code ignored;
  if (dladdr(reinterpret_cast<const void*>(&launched_by_mpi), &found) == 0) return {};
  return fs::canonical(found.dli_fname, ignored);
}

// Plugins are next to the built program, and in lib/weft of an installation.
std::vector<fs::path> folders() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path beside = program.parent_path();
  std::vector<fs::path> result = {beside, (beside / ".." / WEFT_LIBRARY_FOLDER / "weft").lexically_normal()};
  if (const fs::path own = own_file(); !own.empty() && own != program) {
    result.push_back(own.parent_path());
    result.push_back(own.parent_path() / "weft");
  }
  return result;
}

Result<fs::path> find_plugin(const Flavour& flavour) {
  std::vector<std::string> looked;
  for (const fs::path& folder : folders()) {
    const fs::path path = folder / file_name(flavour);
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
    looked.push_back(folder.string());
  }
  return environment_error(
      fmt::format("weft was built without {}: {} was not found in {}", flavour.library, file_name(flavour),
                  fmt::join(looked, ", ")),
      fmt::format("install {} and build again, or set WEFT_MPI_PLUGIN to the plugin's path",
                  flavour.package));
}

Result<const WeftMpiTable*> open_plugin(const fs::path& path, std::string_view package) {
  // RTLD_GLOBAL, because the MPI's own plugins need its symbols; never unloaded, because it leaves
  // threads.
  void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (plugin == nullptr) {
    return environment_error(fmt::format("the MPI plugin cannot be loaded: {}", dlerror()),
                             package.empty() ? "" : fmt::format("install {}", package));
  }
  const auto function = reinterpret_cast<WeftMpiTableFunction>(dlsym(plugin, "weft_mpi_table"));
  if (function == nullptr) return user_error(fmt::format("not an MPI plugin of weft: {}", path.string()));
  const WeftMpiTable* table = function();
  if (table->version != kWeftMpiVersion) {
    return user_error(
        fmt::format("the MPI plugin is for another version of weft: expected {}, found {} in {}",
                    kWeftMpiVersion, table->version, path.string()));
  }
  return table;
}

}  // namespace

bool launched_by_mpi() { return launcher() != nullptr; }

Result<const WeftMpiTable*> load_plugin() {
  const Flavour* flavour = launcher();
  if (const char* asked = std::getenv("WEFT_MPI_PLUGIN"); asked != nullptr && *asked != '\0') {
    const std::string_view name = asked;
    if (name.find('/') != std::string_view::npos) {
      return open_plugin(name, flavour == nullptr ? "" : flavour->package);
    }
    flavour = find_flavour(name);
    if (flavour == nullptr) {
      return user_error(fmt::format("WEFT_MPI_PLUGIN is openmpi, mpich or a path, not {}", name));
    }
  }
  if (flavour == nullptr) {
    return user_error("MPI did not start this process: neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set",
                      "start it with mpirun -n 4 PROGRAM, or choose another transport");
  }
  WEFT_TRY(path, find_plugin(*flavour));
  return open_plugin(path, flavour->package);
}

}  // namespace weft::transport::mpi
