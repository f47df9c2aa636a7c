#include "weft/formats/nccl_topology_xml.h"

#include <limits>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {
namespace {

constexpr std::int64_t kAnyTopologyNumber = std::numeric_limits<std::int32_t>::max();

Result<std::int32_t> number(const XmlElement& element, std::string_view attribute, std::int64_t low,
                            std::int64_t high, std::int64_t absent) {
  WEFT_TRY(value, element.integer_or(attribute, low, high, absent));
  return static_cast<std::int32_t>(value);
}

// NCCL writes -1 for unknown values.
Result<double> real(const XmlElement& element, std::string_view attribute, double low) {
  constexpr double kHigh = 1e9;
  const auto text = element.find(attribute);
  if (!text) return 0.0;
  if (const auto value = read_number<double>(*text, low, kHigh)) return *value;
  return element.unexpected(attribute, fmt::format("a number from {} to {}", low, kHigh));
}

std::string text_or_empty(const XmlElement& element, std::string_view attribute) {
  return std::string(element.find(attribute).value_or(""));
}

// The parent of an element.
struct Parent {
  std::int32_t cpu = 0;
  std::int32_t pci = -1;
};

class NcclTopologyReader {
 public:
  Result<NcclSystem> read(const XmlElement& root) {
    if (root.tag() != "system")
      return root.error(fmt::format("the root of an NCCL topology is <system>, not <{}>", root.tag()));
    WEFT_TRY(version, number(root, "version", 0, kAnyTopologyNumber, 1));
    system_.version = version;
    for (XmlElement cpu = root.first_child("cpu"); cpu; cpu = cpu.next_sibling("cpu"))
      WEFT_TRY_STATUS(read_cpu(cpu));
    return std::move(system_);
  }

 private:
  // Appends to a list of bounded length and returns the index.
  template <class T>
  static Result<std::int32_t> append(std::vector<T>& list, T value, const XmlElement& element,
                                     std::size_t most = kMaxNcclElements) {
    if (list.size() == most)
      return element.error(
          fmt::format("more than {} elements at {}: <{}>", most, element.place(), element.tag()));
    list.push_back(std::move(value));
    return static_cast<std::int32_t>(list.size()) - 1;
  }

  Status read_cpu(const XmlElement& element) {
    NcclCpu cpu;
    WEFT_TRY(numa, element.integer("numaid", -1, kAnyTopologyNumber));
    WEFT_TRY(family, element.integer_or("familyid", -1, kAnyTopologyNumber, 0));
    WEFT_TRY(model, element.integer_or("modelid", -1, kAnyTopologyNumber, 0));
    cpu.numa = numa;
    cpu.family = family;
    cpu.model = model;
    cpu.host = text_or_empty(element, "host_hash");
    cpu.arch = text_or_empty(element, "arch");
    cpu.vendor = text_or_empty(element, "vendor");
    WEFT_TRY(index, append(system_.cpus, std::move(cpu), element, kMaxNcclCpus));
    return read_children(element, {index, -1});
  }

  // Recursion is as deep as the document, whose depth XmlDocument limits.
  Status read_children(const XmlElement& element, const Parent& parent) {
    for (XmlElement child = element.first_child(); child; child = child.next_sibling()) {
      const std::string_view tag = child.tag();
      if (tag == "pci") WEFT_TRY_STATUS(read_pci(child, parent));
      if (tag == "nic") WEFT_TRY_STATUS(read_nic(child, parent));
      if (tag == "gpu" && parent.pci >= 0) WEFT_TRY_STATUS(read_gpu(child, parent));
      if (tag == "pcilink" && parent.pci >= 0) {
        WEFT_TRY(target, child.text("target"));
        system_.pcis[parent.pci].links.emplace_back(target);
      }
    }
    return {};
  }

  Status read_pci(const XmlElement& element, const Parent& parent) {
    NcclPci pci;
    pci.cpu = parent.cpu;
    pci.parent = parent.pci;
    WEFT_TRY(bus, element.text("busid"));
    pci.bus = bus;
    pci.device_class = text_or_empty(element, "class");
    pci.speed = text_or_empty(element, "link_speed");
    WEFT_TRY(width, number(element, "link_width", 0, 64, 0));
    pci.width = width;
    WEFT_TRY(index, append(system_.pcis, std::move(pci), element));
    return read_children(element, {parent.cpu, index});
  }

  Status read_gpu(const XmlElement& element, const Parent& parent) {
    NcclGpu gpu;
    gpu.pci = parent.pci;
    WEFT_TRY(device, number(element, "dev", -1, kAnyTopologyNumber, -1));
    WEFT_TRY(rank, number(element, "rank", -1, kAnyTopologyNumber, -1));
    WEFT_TRY(compute, number(element, "sm", 0, kAnyTopologyNumber, 0));
    WEFT_TRY(direct, number(element, "gdr", 0, kAnyTopologyNumber, 0));
    gpu.device = device;
    gpu.rank = rank;
    gpu.compute = compute;
    gpu.direct_rdma = direct != 0;
    gpu.architecture = text_or_empty(element, "gcn");
    for (XmlElement child = element.first_child(); child; child = child.next_sibling()) {
      const std::string_view tag = child.tag();
      const bool cpu = tag == "c2c";
      if (!cpu && tag != "nvlink" && tag != "xgmi") continue;
      NcclPeer peer;
      peer.kind = cpu ? NcclPeer::Kind::c2c : tag == "xgmi" ? NcclPeer::Kind::xgmi : NcclPeer::Kind::nvlink;
      WEFT_TRY(count, number(child, "count", 1, 1024, 1));
      WEFT_TRY(bandwidth, real(child, "bw", 0));
      peer.count = count;
      peer.bandwidth = bandwidth;
      peer.target_class = text_or_empty(child, "tclass");
      if (!cpu) {
        WEFT_TRY(target, child.text("target"));
        peer.target = target;
      }
      WEFT_TRY_STATUS(append(gpu.peers, std::move(peer), child));
    }
    WEFT_TRY_STATUS(append(system_.gpus, std::move(gpu), element));
    return {};
  }

  Status read_nic(const XmlElement& element, const Parent& parent) {
    WEFT_TRY(nic, append(system_.nics, NcclNic{parent.cpu, parent.pci}, element));
    for (XmlElement child = element.first_child("net"); child; child = child.next_sibling("net")) {
      NcclNet net;
      net.nic = nic;
      WEFT_TRY(device, number(child, "dev", -1, kAnyTopologyNumber, -1));
      WEFT_TRY(port, number(child, "port", -1, kAnyTopologyNumber, 0));
      WEFT_TRY(speed, real(child, "speed", -1));
      WEFT_TRY(latency, real(child, "latency", -1));
      net.device = device;
      net.port = port;
      net.speed = speed;
      net.latency = latency;
      net.name = text_or_empty(child, "name");
      WEFT_TRY_STATUS(append(system_.nets, std::move(net), child));
    }
    return {};
  }

  NcclSystem system_;
};

}  // namespace

Result<NcclSystem> read_nccl_topology(std::string_view text) {
  WEFT_TRY(document, XmlDocument::parse(text, Quotes::double_only));
  return NcclTopologyReader().read(document.root());
}

}  // namespace weft::formats
