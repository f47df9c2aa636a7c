// weft/app/explain/hardware.h -- clusters and devices as text and as JSON.
#pragma once
#include <span>
#include <string>

#include "weft/plan/cluster/cluster.h"
#include "weft/plan/cluster/device.h"

namespace weft::explain {

// `origins`: one sentence per figure that was measured or assumed.
std::string print_text(const cluster::Cluster& cluster, std::size_t width,
                       std::span<const std::string> origins = {});
std::string print_json(const cluster::Cluster& cluster,
                       std::span<const std::string> origins = {});  // one line
std::string print_text(const cluster::Device& device, std::size_t width);
std::string print_json(const cluster::Device& device);  // one line

std::string print_rates(const cluster::Device& device);    // "f32 67 Tflop/s, bf16 989 Tflop/s"
std::string print_links(const cluster::Cluster& cluster);  // "ib 50 GB/s 5 us, nvlink 450 GB/s 1 us"
std::string print_mesh(const cluster::Cluster& cluster);   // "node = 4, gpu = 8"

}  // namespace weft::explain
