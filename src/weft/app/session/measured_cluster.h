// weft/app/session/measured_cluster.h -- CREATE CLUSTER FROM logs of nccl-tests, and what else tells of a cluster.
//
//   CREATE CLUSTER mine FROM 'one_node.txt', 'four_nodes.txt' [AS 4 NODES OF 8 DEVICES h100] [LINK ...]
//
//   ranks, hosts, device      as AS says, else as the logs' headers do
//   a log of one node         the link WITHIN: bandwidth and latency such that Weft's price of that collective
//                             meets the log at its best bus bandwidth and at its quickest call
//   a log of several nodes    the link ACROSS: a ring through all devices leaves and enters a node once, so the
//                             cards of a node carry the bus bandwidth together
//   a LINK of the statement   goes before what a log says
//   a topology, a hostfile    what logs leave open (cluster_files.h): rates that nobody measured, nodes, devices
//
// What is neither measured nor said is assumed, as a shipped cluster of the same device has it; the catalog keeps
// a sentence about each link, which DESCRIBE repeats.
//
// Included by app/session and app/command only.
#pragma once
#include <memory>

#include "weft/base/result.h"
#include "weft/language/bind.h"
#include "weft/language/catalog.h"

namespace weft::session {

// language::define(), and clusters from logs.
Status define_object(language::Catalog& catalog, const std::shared_ptr<const language::ParsedText>& source,
                     const language::syntax::Statement& statement, const language::BindOptions& options);

}  // namespace weft::session
