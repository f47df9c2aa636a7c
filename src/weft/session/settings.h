// weft/session/settings.h -- what SET sets and WITH (...) overrides for one statement.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/language/bind.h"
#include "weft/language/syntax.h"
#include "weft/train/training_plan.h"

namespace weft::session {

struct Settings {
  double memory_limit = 0;  // bytes a device may use; 0: all it has
  std::int64_t plan_limit = 1'000'000;
  plan::DType precision = plan::DType::f32;
  train::TrainingOptions training;
};

struct SettingSpec {
  std::string_view name;
  std::string_view summary;
  Status (*set)(Settings& settings, const language::syntax::Value& value);
  std::string (*show)(const Settings& settings);
};

std::span<const SettingSpec> setting_specs();
std::vector<std::string_view> setting_names();

// Fails on an unknown name or a value of the wrong kind, at its place; `settings` then is as it was.
Status apply(Settings& settings, const language::syntax::Name& name, const language::syntax::Value& value);

// A statement's WITH list: settings change `settings`, everything else must be a size of the model.
Result<std::vector<language::SizeOverride>> apply_list(Settings& settings,
                                                       std::span<const language::syntax::Setting> list,
                                                       std::span<const std::string_view> sizes,
                                                       std::string_view model);

}  // namespace weft::session
