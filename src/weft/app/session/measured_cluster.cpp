#include "weft/app/session/measured_cluster.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/app/session/cluster_files.h"
#include "weft/base/letters.h"
#include "weft/base/units.h"
#include "weft/planner/exchange/collective_measured.h"
#include "weft/predict/cost/exchange_seconds.h"

namespace weft::session {
namespace {

using language::syntax::CreateCluster;
using language::syntax::Link;
using language::syntax::LinkKind;
using ExchangeKind = program::Exchange::Kind;

// The figures of a log that determine a link.
struct MeasuredLog {
  std::string path;
  formats::CollectiveTable table;
  ExchangeKind kind = ExchangeKind::all_reduce;
  bool kind_assumed = false;
  sim::Measurement best, quickest;  // highest bus bandwidth; shortest time
};

std::optional<ExchangeKind> exchange_kind(collective::Kind kind) {
  switch (kind) {
    case collective::Kind::custom:
    case collective::Kind::all_reduce: return ExchangeKind::all_reduce;
    case collective::Kind::all_gather: return ExchangeKind::all_gather;
    case collective::Kind::reduce_scatter: return ExchangeKind::reduce_scatter;
    case collective::Kind::all_to_all: return ExchangeKind::all_to_all;
    default: return std::nullopt;
  }
}

Result<MeasuredLog> read_log(const language::syntax::Text& file) {
  MeasuredLog log;
  log.path = file.text;
  const auto placed = [&](Error error) {
    error.span = file.span;
    return error;
  };
  auto table = exchange::read_collective_table(log.path);
  if (!table.ok()) return placed(std::move(table).error());
  log.table = std::move(*table);
  auto points = exchange::measurements(log.table, log.path);
  if (!points.ok()) return placed(std::move(points).error());
  const auto kind = exchange_kind(log.table.kind);
  if (!kind)
    return user_error(fmt::format("{} measures {}, which is not enough to fit a link", log.path,
                                  collective::name(log.table.kind)),
                      "run all_reduce_perf; all_gather, reduce_scatter and alltoall also work", file.span);
  log.kind = *kind;
  log.kind_assumed = log.table.kind == collective::Kind::custom;
  if (log.table.ranks == 1)
    return user_error(fmt::format("{} has one rank, which sends nothing", log.path),
                      "run it on all devices of a node", file.span);
  log.quickest = log.best = points->front();
  for (const sim::Measurement& point : *points) {
    const auto rate = [](const sim::Measurement& at) { return static_cast<double>(at.bytes) / at.seconds; };
    if (rate(point) > rate(log.best)) log.best = point;
    if (point.seconds < log.quickest.seconds) log.quickest = point;
  }
  return log;
}

// Bisects for the x in [low, high] where the increasing function `rises` equals `wanted`; returns
// an end if there is none.
double solve(double low, double high, double wanted, const std::function<double(double)>& rises) {
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (rises(middle) < wanted ? low : high) = middle;
  }
  return (low + high) / 2;
}

struct LinkFigures {
  double bytes_per_second = 0, latency_seconds = 0;
};

// Alternates between fitting latency and bandwidth three times, since each depends slightly on the
// other.
LinkFigures fit_link(ExchangeKind kind, cost::MeshLink link, const sim::Measurement& large,
                     double small_bytes, double small_seconds) {
  const auto seconds = [&](double bytes) { return cost::exchange_seconds(kind, link, bytes).seconds(); };
  link.bytes_per_second = static_cast<double>(large.bytes) / large.seconds;
  for (int round = 0; round < 3; ++round) {
    link.latency_seconds = solve(0, small_seconds, small_seconds, [&](double latency) {
      link.latency_seconds = latency;
      return seconds(small_bytes);
    });
    // Bisects over log(seconds per byte), since the rate may have any order of magnitude.
    const double slowness = solve(std::log(1e-15), std::log(1e-6), large.seconds, [&](double log_slowness) {
      link.bytes_per_second = 1 / std::exp(log_slowness);
      return seconds(static_cast<double>(large.bytes));
    });
    link.bytes_per_second = 1 / std::exp(slowness);
  }
  return {link.bytes_per_second, link.latency_seconds};
}

class ClusterFromLogs {
 public:
  ClusterFromLogs(const language::Catalog& catalog, const CreateCluster& statement)
      : catalog_(catalog), made_(statement), statement_(statement) {}

  Status read() {
    WEFT_TRY(files, read_cluster_files({statement_.logs.begin(), statement_.logs.size()}));
    files_ = std::move(files);
    for (const language::syntax::Text& file : files_.logs) {
      WEFT_TRY(log, read_log(file));
      logs_.push_back(std::move(log));
    }
    WEFT_TRY_STATUS(find_shape());
    WEFT_TRY_STATUS(find_device());
    if (files_.node) files_.node->settle(made_.device.text);
    links_.assign(statement_.links.begin(), statement_.links.end());
    WEFT_TRY_STATUS(sort_logs());
    WEFT_TRY_STATUS(find_within());
    WEFT_TRY_STATUS(find_across());
    made_.links = links_;
    made_.logs = {};
    return {};
  }

  const CreateCluster& made() const { return made_; }
  std::vector<std::string> take_origins() { return std::move(origins_); }

 private:
  Error wrong(std::string message, std::string hint) const {
    return user_error(std::move(message), std::move(hint), statement_.logs[0].span);
  }

  // Numbers of nodes and devices from different sources must agree.
  Status agree(std::string_view what, std::int64_t one, const std::string& path, std::int64_t other,
               std::string_view where) const {
    if (one == 0 || other == 0 || one == other) return {};
    return wrong(fmt::format("{} and {} differ in the {}: {} and {}", path, where, what, one, other),
                 "remove one of them");
  }

  // From AS; else from the files, and if they do not say, from the log with the most ranks.
  Status find_shape() {
    const bool said = statement_.nodes.whole > 0;
    std::int64_t devices = said ? statement_.devices.whole : 0;
    if (files_.node) {
      WEFT_TRY_STATUS(agree("devices of a node", files_.node->devices, files_.node->path, devices, "AS"));
      devices = files_.node->devices;
    }
    if (files_.hosts) {
      WEFT_TRY_STATUS(agree("devices of a node", files_.hosts->slots, files_.hosts->path, devices,
                            said ? "AS" : "the other file"));
      if (devices == 0) devices = files_.hosts->slots;
      if (said)
        WEFT_TRY_STATUS(
            agree("nodes", files_.hosts->nodes, files_.hosts->path, statement_.nodes.whole, "AS"));
    }
    if (said) return {};
    made_.nodes.span = made_.devices.span = statement_.name.span;
    if (logs_.empty() || (files_.hosts && devices > 0)) {
      if (devices == 0)
        return wrong(fmt::format("{} does not give the number of devices per node", files_.hosts->path),
                     "add slots=8 after each machine, or AS 2 NODES OF 8 DEVICES h100");
      made_.nodes.whole = files_.hosts ? files_.hosts->nodes : 1;
      made_.devices.whole = devices;
      return {};
    }
    const auto most =
        std::ranges::max_element(logs_, {}, [](const MeasuredLog& log) { return log.table.ranks; });
    const formats::CollectiveTable& table = most->table;
    if (table.ranks == 0 || table.hosts == 0 || table.ranks % table.hosts != 0)
      return wrong(fmt::format("{} does not say which node each rank is on", most->path),
                   "state it: FROM '...' AS 2 NODES OF 8 DEVICES h100");
    made_.nodes.whole = files_.hosts ? files_.hosts->nodes : table.hosts;
    made_.devices.whole = devices > 0 ? devices : table.ranks / table.hosts;
    return {};
  }

  // The longest catalog name that is part of the driver's name for the device.
  Status find_device() {
    if (statement_.device.given()) return {};
    std::string_view found;
    std::string called;
    for (const MeasuredLog& log : logs_)
      if (called.empty()) called = log.table.device;
    for (const std::string_view name : language::names_of(catalog_.devices))
      if (lower(called).find(lower(name)) != std::string::npos && name.size() > found.size()) found = name;
    if (found.empty() && files_.node && !files_.node->device.empty()) {
      for (const std::string_view name : language::names_of(catalog_.devices))
        if (name == files_.node->device) found = name;
      called = fmt::format("{} in {}", files_.node->device_why, files_.node->path);
    }
    if (found.empty())
      return wrong(called.empty()
                       ? fmt::format("{} does not name the device of its ranks", statement_.logs[0].text)
                       : fmt::format("no device is named after {}", called),
                   "name it: FROM '...' AS 2 NODES OF 8 DEVICES h100; SHOW DEVICES lists them");
    made_.device = {found, statement_.name.span};
    origins_.push_back(fmt::format("device: assuming {} is {}", called, found));
    return {};
  }

  Status sort_logs() {
    for (const MeasuredLog& log : logs_) {
      const std::int64_t ranks = log.table.ranks > 0 ? log.table.ranks : devices();
      const bool several = log.table.hosts > 0 ? log.table.hosts > 1 : ranks > made_.devices.whole;
      if (several && ranks % made_.devices.whole != 0)
        return wrong(fmt::format("{} has {} ranks, which do not fill nodes of {} devices", log.path, ranks,
                                 made_.devices.whole),
                     "run on all devices of each node");
      if (!several && within_ != nullptr)
        return wrong(fmt::format("{} and {} are both of one node", within_->path, log.path),
                     "give one of each number of nodes");
      if (several)
        across_.push_back(&log);
      else
        within_ = &log;
    }
    std::ranges::stable_sort(across_, {}, [&](const MeasuredLog* log) { return nodes_of(*log); });
    const auto same =
        std::ranges::adjacent_find(across_, {}, [&](const MeasuredLog* log) { return nodes_of(*log); });
    if (same == across_.end()) return {};
    return wrong(
        fmt::format("{} and {} are both of {} nodes", (*same)->path, (*(same + 1))->path, nodes_of(**same)),
        "give one of each number of nodes");
  }

  std::int64_t ranks_of(const MeasuredLog& log) const {
    return log.table.ranks > 0 ? log.table.ranks : devices();
  }
  std::int64_t nodes_of(const MeasuredLog& log) const { return ranks_of(log) / made_.devices.whole; }

  std::int64_t devices() const { return made_.nodes.whole * made_.devices.whole; }

  bool is_said(LinkKind kind) const {
    return std::ranges::any_of(statement_.links, [&](const Link& link) { return link.kind == kind; });
  }

  void add_link(LinkKind kind, std::string_view name, const LinkFigures& figures) {
    Link link{};
    link.name = {name, statement_.name.span};
    link.kind = kind;
    link.level = {"node", statement_.name.span};
    const auto value = [&](double number, Dimension dimension) {
      language::syntax::Value made;
      made.kind = language::syntax::ValueKind::quantity;
      made.number.value = number;
      made.quantity = {number, dimension};
      made.span = statement_.name.span;
      return made;
    };
    link.bandwidth = value(figures.bytes_per_second, Dimension::bytes_per_second);
    link.latency = value(figures.latency_seconds, Dimension::seconds);
    link.span = statement_.name.span;
    links_.push_back(link);
  }

  static double bus_bandwidth(const MeasuredLog& log, std::int64_t ranks) {
    const collective::Kind kind = log.kind_assumed ? collective::Kind::all_reduce : log.table.kind;
    return collective::bus_factor(kind, static_cast<std::int32_t>(ranks)) *
           static_cast<double>(log.best.bytes) / log.best.seconds;
  }

  std::string measured(const MeasuredLog& log, std::int64_t ranks) const {
    return fmt::format(
        "{}{} of {} ranks in {}: bus bandwidth {} at {}, {} at {}", log.kind_assumed ? "taken for " : "",
        collective::name(log.kind_assumed ? collective::Kind::all_reduce : log.table.kind), ranks, log.path,
        print_rate(bus_bandwidth(log, ranks)), print_bytes(static_cast<double>(log.best.bytes)),
        print_seconds(log.quickest.seconds), print_bytes(static_cast<double>(log.quickest.bytes)));
  }

  static std::string figures_text(const LinkFigures& figures) {
    return fmt::format("{}, {}", print_rate(figures.bytes_per_second),
                       print_seconds(figures.latency_seconds));
  }

  // The link of a shipped cluster with the same device: axis 0 across nodes, 1 within them.
  std::optional<std::pair<std::string, LinkFigures>> usual(std::size_t axis) const {
    for (const auto& [name, cluster] : catalog_.clusters)
      if (cluster.device.name == made_.device.text && cluster.axes.size() == 2 &&
          !cluster.axes[axis].link.name.empty())
        return std::pair(name, LinkFigures{cluster.axes[axis].link.bytes_per_second,
                                           cluster.axes[axis].link.latency_seconds});
    return std::nullopt;
  }

  // A link rate from a file, with an assumed latency, which no file states.
  LinkFigures described(double bytes_per_second, const std::string& path, const std::string& why,
                        std::size_t axis, std::string_view where) {
    constexpr LinkFigures kRound[] = {{0, 5e-6}, {0, 2e-6}};  // as in clusters.weft
    const auto known = usual(axis);
    const LinkFigures figures{bytes_per_second,
                              known ? known->second.latency_seconds : kRound[axis].latency_seconds};
    origins_.push_back(fmt::format("{}: {}, not measured: {} has {}; its latency is assumed{}", where,
                                   figures_text(figures), path, why,
                                   known ? fmt::format(", as in {}", known->first) : ""));
    return figures;
  }

  Status find_within() {
    if (made_.devices.whole == 1) return {};
    if (is_said(LinkKind::within)) {
      for (const Link& link : links_)
        if (link.kind == LinkKind::within)
          inside_ = {link.bandwidth.quantity.value, link.latency.quantity.value};
      origins_.push_back("within a node: from the statement");
      return {};
    }
    if (within_ != nullptr) {
      const std::int64_t ranks = within_->table.ranks > 0 ? within_->table.ranks : made_.devices.whole;
      const cost::MeshLink link{.ranks = static_cast<std::int32_t>(ranks)};
      inside_ = fit_link(within_->kind, link, within_->best, static_cast<double>(within_->quickest.bytes),
                         within_->quickest.seconds);
      origins_.push_back(fmt::format("within a node: {}, fitted to measured {}", figures_text(inside_),
                                     measured(*within_, ranks)));
    } else if (files_.node && files_.node->inside > 0) {
      inside_ =
          described(files_.node->inside, files_.node->path, files_.node->inside_why, 1, "within a node");
    } else {
      const auto known = usual(1);
      if (!known)
        return wrong("no log covers a single node",
                     "add one, or give the link: LINK gpu WITHIN node (450 GB/s, 1.5 us)");
      inside_ = known->second;
      origins_.push_back(
          fmt::format("within a node: {}, assumed: as in {}", figures_text(inside_), known->first));
    }
    add_link(LinkKind::within, "gpu", inside_);
    return {};
  }

  Status find_across() {
    if (made_.nodes.whole == 1) return {};
    if (is_said(LinkKind::across)) {
      origins_.push_back("across nodes: from the statement");
      return {};
    }
    if (across_.empty() && files_.node && files_.node->cards > 0) {
      const double share = files_.node->cards / static_cast<double>(made_.devices.whole);
      add_link(LinkKind::across, "net",
               described(share, files_.node->path,
                         fmt::format("{} for {} devices", files_.node->cards_why, made_.devices.whole), 0,
                         "across nodes"));
      return {};
    }
    if (across_.empty())
      return wrong("no log covers several nodes",
                   "add one, or give the link: LINK ib ACROSS node (50 GB/s, 5 us)");
    // The log of the fewest nodes gives the link; the others, what is left of it among more nodes.
    const MeasuredLog& first = *across_.front();
    const std::int64_t ranks = ranks_of(first), local = made_.devices.whole;
    const auto of_local = static_cast<double>(local), of_nodes = static_cast<double>(nodes_of(first));
    const double card = card_rate(first);
    // Along the node axis, a card carries its share of an all-reduce at that rate, after the
    // reduction within nodes.
    const cost::MeshLink inside{.ranks = static_cast<std::int32_t>(local),
                                .latency_seconds = inside_.latency_seconds,
                                .bytes_per_second = inside_.bytes_per_second};
    const double share = static_cast<double>(first.best.bytes) / of_local;
    const sim::Measurement large{static_cast<std::int64_t>(share),
                                 2 * (of_nodes - 1) / of_nodes * share / card};
    double quickest = first.quickest.seconds;
    if (local > 1)
      quickest -=
          cost::exchange_seconds(first.kind, inside, static_cast<double>(first.quickest.bytes)).seconds();
    const cost::MeshLink link{.ranks = static_cast<std::int32_t>(nodes_of(first)), .across_nodes = true};
    const LinkFigures figures =
        fit_link(ExchangeKind::all_reduce, link, large, static_cast<double>(first.quickest.bytes) / of_local,
                 std::max(quickest, 0.0));
    origins_.push_back(fmt::format("across nodes: {}, fitted to measured {}; {} devices of a node share it",
                                   figures_text(figures), measured(first, ranks), local));
    add_link(LinkKind::across, "net", figures);
    if (across_.size() > 1) add_scaling(card);
    return {};
  }

  // The rate of a device's card. A ring enters and leaves each node once, so the cards of a node
  // share its traffic. In an all-to-all, each card carries the data for other nodes.
  double card_rate(const MeasuredLog& log) const {
    const std::int64_t ranks = ranks_of(log);
    const auto of_ranks = static_cast<double>(ranks), of_local = static_cast<double>(made_.devices.whole);
    if (log.kind == ExchangeKind::all_to_all)
      return static_cast<double>(log.best.bytes) * (of_ranks - of_local) / of_ranks / log.best.seconds;
    return bus_bandwidth(log, ranks) / of_local;
  }

  void add_scaling(double card) {
    for (const MeasuredLog* const log : across_) {
      language::syntax::LinkShare at{};
      at.nodes.whole = nodes_of(*log);
      at.nodes.value = static_cast<double>(at.nodes.whole);
      at.share.value = std::min(1.0, card_rate(*log) / card);
      at.nodes.span = at.share.span = statement_.name.span;
      scaling_.push_back(at);
      origins_.push_back(fmt::format("collectives among {} nodes: {:.0f} % of it, by measured {}",
                                     at.nodes.whole, 100 * at.share.value, measured(*log, ranks_of(*log))));
    }
    links_.back().scaling = scaling_;
  }

  const language::Catalog& catalog_;
  CreateCluster made_;
  const CreateCluster& statement_;
  ClusterFiles files_;
  std::vector<MeasuredLog> logs_;
  std::vector<Link> links_;
  std::vector<std::string> origins_;
  const MeasuredLog* within_ = nullptr;
  std::vector<const MeasuredLog*> across_;  // by number of nodes
  std::vector<language::syntax::LinkShare> scaling_;
  LinkFigures inside_;
};

}  // namespace

Status define_object(language::Catalog& catalog, const std::shared_ptr<const language::ParsedText>& source,
                     const language::syntax::Statement& statement, const language::BindOptions& options) {
  if (statement.kind != language::syntax::StatementKind::create_cluster ||
      statement.as<CreateCluster>().logs.empty())
    return language::define(catalog, source, statement, options);
  if (const auto& more = statement.as<CreateCluster>().more; !more.empty())
    return user_error("logs need nodes with the same devices",
                      "CREATE CLUSTER .. AS with several kinds states its links", more.front().device.span);
  ClusterFromLogs cluster(catalog, statement.as<CreateCluster>());
  WEFT_TRY_STATUS(cluster.read());
  WEFT_TRY_STATUS(language::define(catalog, source, cluster.made(), options));
  catalog.origins.insert_or_assign(std::string(cluster.made().name.text), cluster.take_origins());
  return {};
}

}  // namespace weft::session
