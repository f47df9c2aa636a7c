// weft/explain/hardware.h -- clusters and devices in words.
#pragma once
#include <string>

#include "weft/cluster/cluster.h"
#include "weft/cluster/device.h"

namespace weft::explain {

std::string print_text(const cluster::Cluster& cluster, std::size_t width);
std::string print_json(const cluster::Cluster& cluster);  // one line
std::string print_text(const cluster::Device& device);
std::string print_json(const cluster::Device& device);  // one line

std::string print_rates(const cluster::Device& device);    // "f32 67 Tflop/s, bf16 989 Tflop/s"
std::string print_links(const cluster::Cluster& cluster);  // "ib 50 GB/s 5 us, nvlink 450 GB/s 1 us"
std::string print_mesh(const cluster::Cluster& cluster);   // "node = 4, gpu = 8"

}  // namespace weft::explain
