// weft/language/define_cluster.h -- evaluates CREATE DEVICE and CREATE CLUSTER.
#pragma once
#include "weft/base/result.h"
#include "weft/language/catalog.h"

namespace weft::language {

// Settings: f64 f32 tf32 f16 bf16 f8 i8 (compute rates), memory (bytes), bandwidth, launch (time).
Result<cluster::Device> make_device(const syntax::CreateDevice& statement);
Result<cluster::Stack> make_stack(const syntax::CreateStack& statement);

// Fails on an unknown device, a second link of the same kind, or a link at a level other than
// `node`.
Result<cluster::Cluster> make_cluster(const Catalog& catalog, const syntax::CreateCluster& statement);

}  // namespace weft::language
