// weft/communication/transport/mpi/plugin.h -- finds the MPI library that matches the launcher of
// this process.
//
//   OMPI_COMM_WORLD_RANK or PMIX_RANK   weft_mpi_openmpi.so   mpirun of Open MPI, srun --mpi=pmix
//   PMI_RANK                            weft_mpi_mpich.so     mpiexec of MPICH (hydra), srun --mpi=pmi2
//
// Plugins are searched for beside the program and in its ../lib/weft. WEFT_MPI_PLUGIN overrides
// this: "openmpi", "mpich", or the path of a plugin.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/communication/transport/mpi/table.h"

namespace weft::transport::mpi {

// Whether an MPI launcher started this process.
bool launched_by_mpi();

// The table of the plugin that matches the launcher. Fails, with instructions to install, if there
// is no MPI launcher, no plugin, or no MPI library for it.
Result<const WeftMpiTable*> load_plugin();

}  // namespace weft::transport::mpi
