#include "weft/app/explain/profile_cluster.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "weft/app/explain/table.h"
#include "weft/base/letters.h"
#include "weft/base/median.h"
#include "weft/base/units.h"
#include "weft/language/keyword.h"

namespace weft::explain {
namespace {

using explain::Align;
using explain::Table;

// Turns a table's lines into comments.
std::string as_comment(std::string_view text) {
  std::string comment;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    comment += line.empty() ? std::string("--\n") : fmt::format("-- {}\n", line);
  }
  return comment;
}

std::string operations(double a_second) { return print(Quantity{a_second, Dimension::flops_per_second}); }

std::string rates_table(const measure::MachineProfile& profile) {
  Table table({{"what"}, {"threads", Align::right}, {"buffer", Align::right}, {"rate", Align::right}});
  for (const cost::Rate& rate : profile.rates) {
    std::string value = print_rate(rate.per_second);
    if (rate.what == "call") value = print_seconds(1 / rate.per_second) + " per call";
    if (rate.what.starts_with("multiply")) value = operations(rate.per_second);
    table.add({rate.what, fmt::to_string(rate.threads), print_bytes(static_cast<double>(rate.bytes)), value});
  }
  return table.print();
}

std::string links_table(const measure::MachineProfile& profile) {
  Table table({{"transport"},
               {"from", Align::right},
               {"to", Align::right},
               {"latency", Align::right},
               {"alone", Align::right},
               {"all together", Align::right}});
  for (const cost::LinkTime& link : profile.links) {
    if (link.together) continue;
    const auto same = [&](const cost::LinkTime& other) {
      return other.together && other.transport == link.transport && other.from == link.from &&
             other.to == link.to;
    };
    const auto together = std::ranges::find_if(profile.links, same);
    table.add({link.transport, fmt::to_string(link.from), fmt::to_string(link.to),
               print_seconds(link.latency_seconds), print_rate(link.bytes_per_second),
               together != profile.links.end() ? print_rate(together->bytes_per_second) : ""});
  }
  return table.print();
}

// Bandwidth per rank while all ranks send, and latency.
struct WirePrice {
  double bytes_per_second = 0, latency_seconds = 0;
};

// Whether a link connects two hosts. Links within hosts were measured one host at a time.
bool crosses(const measure::MachineProfile& profile, const cost::LinkTime& link) {
  const auto from = static_cast<std::size_t>(link.from), to = static_cast<std::size_t>(link.to);
  const std::vector<std::int32_t>& host = profile.host_of;
  return link.transport == "tcp" && from < host.size() && to < host.size() && host[from] != host[to];
}

std::optional<WirePrice> wire_of(const measure::MachineProfile& profile, std::string_view transport) {
  std::vector<double> alone, together, latencies;
  for (const cost::LinkTime& link : profile.links) {
    if (link.transport != transport || (profile.hosts > 1 && transport == "tcp" && !crosses(profile, link)))
      continue;
    (link.together ? together : alone).push_back(link.bytes_per_second);
    latencies.push_back(link.latency_seconds);
  }
  if (latencies.empty() || (alone.empty() && together.empty())) return std::nullopt;
  return WirePrice{median(together.empty() ? alone : together), median(latencies)};
}

// A device is one rank: its share of a host while all ranks of that host work.
class Device {
 public:
  explicit Device(const measure::MachineProfile& profile)
      : profile_(profile), ranks_(std::max(profile.ranks / std::max(profile.hosts, 1), 1)) {}

  Result<std::string> print(std::string_view name) const {
    const auto single = find("multiply f32", 1), twice = find("multiply f64", 1), call = find("call", 1);
    const double memory = memory_rate();
    if (!single || !twice || !call || memory <= 0) return environment_error("the profile has no rate");
    const double share = std::min(1.0, static_cast<double>(profile_.cores) / ranks_);
    return fmt::format("CREATE DEVICE {} (f64 = {}, f32 = {}, memory = {}, bandwidth = {}, launch = {});\n",
                       name, operations(*twice * share), operations(*single * share),
                       print_bytes(profile_.memory_bytes / ranks_), print_rate(memory),
                       print_seconds(1 / *call));
  }

 private:
  std::optional<double> find(std::string_view what, std::int32_t threads) const {
    const cost::Rate* largest = nullptr;
    for (const cost::Rate& rate : profile_.rates)
      if (rate.what == what && rate.threads == threads && (largest == nullptr || rate.bytes > largest->bytes))
        largest = &rate;
    return largest != nullptr ? std::optional(largest->per_second) : std::nullopt;
  }

  // Counts a copied byte as a read and a write. Uses the largest measured number of threads that
  // does not exceed the ranks.
  double memory_rate() const {
    std::int32_t threads = 0;
    for (const cost::Rate& rate : profile_.rates)
      if (rate.what == "copy" && rate.threads <= ranks_) threads = std::max(threads, rate.threads);
    return 2 * find("copy", threads).value_or(0) / (ranks_ <= profile_.cores ? std::max(threads, 1) : ranks_);
  }

  const measure::MachineProfile& profile_;
  std::int32_t ranks_;
};

std::string cluster_text(const measure::MachineProfile& profile, std::string_view name,
                         std::string_view links) {
  return fmt::format("CREATE CLUSTER {} AS {} NODES OF {} DEVICES {}_core{};\n", name, profile.hosts,
                     profile.ranks / profile.hosts, name, links);
}

std::string link_text(std::string_view transport, std::string_view level, const WirePrice& wire) {
  return fmt::format("\n  LINK {} {} node ({}, {})", transport, level, print_rate(wire.bytes_per_second),
                     print_seconds(wire.latency_seconds));
}

bool is_name(std::string_view name) {
  const auto is_letter = [](char c) { return (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '_'; };
  return !name.empty() && name.size() <= 64 && is_letter(name[0]) &&
         !language::is_reserved(language::find_keyword(name)) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

Status check_cluster_name(std::string_view name) {
  if (is_name(name)) return {};
  return user_error(fmt::format("expected a name with letters, digits and _, found {}", name),
                    "for example: here");
}

Result<std::string> print_cluster(const measure::MachineProfile& profile, std::string_view name) {
  WEFT_TRY_STATUS(check_cluster_name(name));
  if (profile.hosts < 1 || profile.ranks % profile.hosts != 0) {
    return user_error(fmt::format("all hosts must have the same number of ranks, found {} ranks on {} hosts",
                                  profile.ranks, profile.hosts));
  }
  std::string text =
      fmt::format("-- Measured by weft profile: {} ranks on {} of {}.\n--\n", profile.ranks,
                  profile.hosts == 1 ? "one host" : fmt::format("{} hosts", profile.hosts), profile.machine);
  text += as_comment(rates_table(profile)) + "--\n" + as_comment(links_table(profile)) + "\n";
  WEFT_TRY(device, Device(profile).print(fmt::format("{}_core", name)));
  text += device;
  const auto shm = wire_of(profile, "shm"), inproc = wire_of(profile, "inproc"),
             tcp = wire_of(profile, "tcp");
  const auto& within = shm ? shm : inproc;
  const std::string_view within_name = shm ? "shm" : "inproc";
  if (profile.hosts > 1) {
    std::string links = within ? link_text(within_name, "WITHIN", *within) : "";
    if (tcp) links += link_text("tcp", "ACROSS", *tcp);
    return text + cluster_text(profile, name, links);
  }
  if (within && tcp) {
    const std::string sockets = fmt::format("{}_tcp", name);
    text += fmt::format("CREATE CLUSTER {} AS 1 NODES OF {} DEVICES {}_core{};\n", sockets, profile.ranks,
                        name, link_text("tcp", "WITHIN", *tcp));
  }
  std::string links;
  if (within)
    links = link_text(within_name, "WITHIN", *within);
  else if (tcp)
    links = link_text("tcp", "WITHIN", *tcp);
  return text + cluster_text(profile, name, links);
}

}  // namespace weft::explain
