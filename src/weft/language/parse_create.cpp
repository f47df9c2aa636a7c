// create    = CREATE [ OR REPLACE ] ( device | cluster | stack | function | layer | model )
// device    = DEVICE name settings
// cluster   = CLUSTER name [ FROM string {"," string} ] [ AS nodes {"," nodes} ] { link }
//             AS may be omitted only with FROM: the log then states the nodes.
// nodes     = count NODES OF count DEVICES name
// link      = LINK name ( WITHIN | ACROSS ) name "(" quantity "," quantity ")"
//             [ SHAPE name [ "(" count {"," count} ")" ] ] [ OVERSUBSCRIBED number ]
//             [ SCALING "(" count NODES number {"," count NODES number} ")" ]
// stack     = STACK name [ VERSION string ] settings
// function  = FUNCTION name "(" name {"," name} ")" AS expression
// layer     = LAYER name "(" tensor {"," tensor} ")" body
// model     = MODEL name body
// body      = [ "(" size {"," size} ")" ] [ INPUT tensor {"," tensor} ]
//             { ( PARAMETER | STATE ) parameter {"," parameter} } AS query
//             [ UPDATE name AS "(" query ")" {"," name AS "(" query ")"} ]
//             A LAYER has no INPUT, a MODEL no size without default.
// size      = name [ "=" expression ]
// tensor    = name [ "[" name {"," name} "]" ] [ OF name ]
// parameter = tensor [ INIT name [ "(" number {"," number} ")" ] ]
#include <array>

#include <fmt/format.h>

#include "weft/language/grammar.h"

namespace weft::language {

using namespace syntax;

const Statement* Grammar::create() {
  const std::uint32_t start = here();
  advance();
  const bool replace = accept(Keyword::kw_or);
  if (replace) expect(Keyword::kw_replace, "after CREATE OR");
  if (accept(Keyword::kw_device)) return device(start, replace);
  if (accept(Keyword::kw_cluster)) return cluster(start, replace);
  if (accept(Keyword::kw_stack)) return stack(start, replace);
  if (accept(Keyword::kw_function)) return function(start, replace);
  if (accept(Keyword::kw_layer)) return layer(start, replace);
  if (accept(Keyword::kw_model)) return model(start, replace);
  fail_object("after CREATE");
  return nullptr;
}

const Statement* Grammar::device(std::uint32_t start, bool replace) {
  const Name called = name("a device name");
  const auto given = settings();
  expect_end({});
  return make<CreateDevice>(start, replace, called, given);
}

const Statement* Grammar::stack(std::uint32_t start, bool replace) {
  const Name called = name("a stack name");
  std::optional<Text> version;
  if (accept(Keyword::kw_version)) version = text("a version in quotes");
  const auto given = settings();
  expect_end({});
  return make<CreateStack>(start, replace, called, version, given);
}

const Statement* Grammar::cluster(std::uint32_t start, bool replace) {
  const Name called = name("a cluster name");
  std::span<const Text> logs;
  if (accept(Keyword::kw_from)) logs = list<Text>([&] { return text("a log's name in quotes after FROM"); });
  NodesOf first{};
  Gather<NodesOf> others(*this);
  if (logs.empty() || at(Keyword::kw_as)) {
    expect(Keyword::kw_as, "and the shape of the cluster");
    first = nodes_of();
    while (accept(Kind::comma)) {
      if (!at(Kind::number))
        fail_expected("a number of nodes", "other nodes go after the comma: 1 NODES OF 8 DEVICES a100");
      others.add(nodes_of());
    }
  }
  const auto more = others.finish();
  Gather<Link> links(*this);
  while (at(Keyword::kw_link)) links.add(link());
  const auto joined = links.finish();
  end_cluster(joined);
  return make<CreateCluster>(start, replace, called, logs, first.nodes, first.devices, first.device, joined,
                             more);
}

NodesOf Grammar::nodes_of() {
  NodesOf result{};
  result.nodes = whole_number("a number of nodes", 1);
  expect(Keyword::kw_nodes, "after the number of nodes");
  expect(Keyword::kw_of, "after NODES");
  result.devices = whole_number("a number of devices", 1);
  expect(Keyword::kw_devices, "after the number of devices");
  result.device = name("a device name");
  return result;
}

Link Grammar::link() {
  const std::uint32_t start = here();
  advance();
  Link result{};
  result.name = name("a link name");
  if (accept(Keyword::kw_across)) {
    result.kind = LinkKind::across;
  } else if (!accept(Keyword::kw_within)) {
    static constexpr auto kReach = std::to_array<std::string_view>({"WITHIN", "ACROSS"});
    fail_expected("WITHIN or ACROSS", remedy(kReach));
  }
  result.level = name("what the link connects, such as node");
  const Span open = token_.span;
  expect(Kind::left_paren, "'(', a bandwidth and a latency");
  result.bandwidth = quantity("a bandwidth such as 450 GB/s");
  expect(Kind::comma, "',' and a latency");
  result.latency = quantity("a latency such as 1.5 us");
  if (!accept(Kind::right_paren)) fail_group(open);
  if (accept(Keyword::kw_shape)) {
    result.shape = name("a shape such as ring");
    if (at(Kind::left_paren))
      result.sides = parens<Number>("'('", [&] { return whole_number("the length of a side", 1); });
  }
  if (accept(Keyword::kw_oversubscribed)) result.oversubscribed = number("how many times, such as 2");
  if (accept(Keyword::kw_scaling))
    result.scaling = parens<LinkShare>("'(' and the shares of the bandwidth", [&] {
      LinkShare share{};
      share.nodes = whole_number("a number of nodes", 2);
      expect(Keyword::kw_nodes, "after the number of nodes");
      share.share = number("a share such as 0.8");
      return share;
    });
  result.span = since(start);
  return result;
}

const Statement* Grammar::function(std::uint32_t start, bool replace) {
  const Name called = name("a function name");
  const auto parameters =
      parens<Name>("'(' and the arguments of the function", [&] { return name("the name of an argument"); });
  expect(Keyword::kw_as, "and an expression");
  const Expression* body = expression();
  expect_end({});
  return make<CreateFunction>(start, replace, called, parameters, body);
}

const Statement* Grammar::layer(std::uint32_t start, bool replace) {
  const Name called = name("a layer name");
  const auto arguments = parens<Tensor>("'(' and the tensors the layer takes", [&] { return tensor(); });
  const Body inside = body(ObjectKind::layer);
  return make<CreateLayer>(start, replace, called, arguments, inside);
}

const Statement* Grammar::model(std::uint32_t start, bool replace) {
  const Name called = name("a model name");
  const Body inside = body(ObjectKind::model);
  return make<CreateModel>(start, replace, called, inside);
}

Body Grammar::body(ObjectKind owner) {
  const bool is_model = owner == ObjectKind::model;
  Body result;
  if (at(Kind::left_paren)) result.sizes = parens<Size>("'('", [&] { return size(owner); });
  if (is_model && accept(Keyword::kw_input)) result.inputs = list<Tensor>([&] { return tensor(); });

  Gather<Parameter> parameters(*this);
  while (at(Keyword::kw_parameter) || at(Keyword::kw_state)) {
    const bool is_state = at(Keyword::kw_state);
    const ParameterKind kind = is_state ? ParameterKind::state : ParameterKind::parameter;
    advance();
    do parameters.add(parameter(kind));
    while (accept(Kind::comma));
  }
  result.parameters = parameters.finish();

  if (!accept(Keyword::kw_as)) fail_body(result, owner);
  result.query = query();
  if (accept(Keyword::kw_update)) {
    const Nest nest(*this);
    result.updates = list<Binding>([&] { return update(); });
  }
  if (!result.updates.empty()) expect_end({});
  return result;
}

Size Grammar::size(ObjectKind owner) {
  const std::uint32_t start = here();
  Size result;
  result.name = name("a size");
  if (accept(Kind::equal))
    result.value = size_expression();
  else if (owner == ObjectKind::model)
    fail_expected("= and a default", fmt::format("a model's sizes have defaults: {} = 64", result.name.text));
  result.span = since(start);
  return result;
}

Tensor Grammar::tensor() {
  const std::uint32_t start = here();
  Tensor result;
  result.name = name("a tensor name");
  if (at(Kind::left_bracket)) {
    const Span open = token_.span;
    advance();
    result.indices = list<Name>([&] { return name("an index"); });
    if (!accept(Kind::right_bracket)) fail_close('[', open);
  }
  if (accept(Keyword::kw_of)) result.dtype = name("a type");
  result.span = since(start);
  return result;
}

Parameter Grammar::parameter(ParameterKind kind) {
  const std::uint32_t start = here();
  Parameter result;
  result.kind = kind;
  result.tensor = tensor();
  if (accept(Keyword::kw_init)) result.init = init();
  result.span = since(start);
  return result;
}

Init Grammar::init() {
  const std::uint32_t start = here();
  Init result;
  result.name = name("how to initialize, such as normal(0, 0.02)");
  if (at(Kind::left_paren)) result.arguments = parens<Number>("'('", [&] { return number("a number"); });
  result.span = since(start);
  return result;
}

}  // namespace weft::language
