// weft/app/session/measured_cluster.h -- CREATE CLUSTER FROM nccl-tests logs and topology files.
//
//   CREATE CLUSTER mine FROM 'one_node.txt', 'four_nodes.txt' [AS 4 NODES OF 8 DEVICES h100] [LINK ..]
//
//   ranks, hosts, device      from AS, else from the logs' headers
//   a log of one node         the link WITHIN: bandwidth and latency are fitted so that Weft's cost
//                             of the collective matches the log at its best bus bandwidth and at its
//                             fastest call
//   a log of several nodes    the link ACROSS: a ring through all devices leaves and enters a node
//                             once, so a node's cards together carry the bus bandwidth
//   a LINK of the statement   overrides the logs
//   a topology, a hostfile    what the logs do not give (cluster_files.h): nominal rates, nodes,
//                             devices
//
// Figures that are neither measured nor stated are taken from a shipped cluster of the same device.
// The catalog keeps a sentence about the source of each link, which DESCRIBE prints.
//
// Included by app/session and app/command only.
#pragma once
#include <memory>

#include "weft/base/result.h"
#include "weft/language/bind.h"
#include "weft/language/catalog.h"

namespace weft::session {

// language::define(), plus clusters from logs.
Status define_object(language::Catalog& catalog, const std::shared_ptr<const language::ParsedText>& source,
                     const language::syntax::Statement& statement, const language::BindOptions& options);

}  // namespace weft::session
