// weft/plan/cluster/digest.h -- a digest of a cluster: equal digests predict equal times.
#pragma once
#include "weft/base/hash.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::cluster {

Digest digest_of(const Cluster& cluster);

}  // namespace weft::cluster
