// weft/communication/transport/mpi/plugin.h -- finds the MPI whose launcher started this process.
//
//   OMPI_COMM_WORLD_RANK or PMIX_RANK   weft_mpi_openmpi.so   mpirun of Open MPI, srun --mpi=pmix
//   PMI_RANK                            weft_mpi_mpich.so     mpiexec of MPICH (hydra), srun --mpi=pmi2
//
// A plugin is looked for beside the program and in its ../lib/weft. WEFT_MPI_PLUGIN overrides: "openmpi",
// "mpich", or the path of a plugin.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/communication/transport/mpi/table.h"

namespace weft::transport::mpi {

// Whether a launcher of an MPI started this process.
bool launched_by_mpi();

// The table of the plugin that fits the launcher. Fails when there is no launcher, no plugin, or no MPI for
// it, saying what to install.
Result<const WeftMpiTable*> load_plugin();

}  // namespace weft::transport::mpi
