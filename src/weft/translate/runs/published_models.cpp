#include "weft/translate/runs/published_models.h"

#include "weft/translate/runs/run_fields.h"

namespace weft::runs {
namespace {

// From config.json of the repositories on huggingface.co: mistralai/Mixtral-8x22B-v0.1 and 8x7B-v0.1, Qwen/Qwen3-30B-A3B
// and Qwen3-235B-A22B, openai/gpt-oss-20b and gpt-oss-120b, xai-org/grok-1, databricks/dbrx-base, allenai/OLMoE-1B-7B,
// deepseek-ai/DeepSeek-V2-Lite, DeepSeek-V2 and DeepSeek-V3, moonshotai/Moonlight-16B-A3B and Kimi-K2-Base.
// A name that begins with another comes before it.
constexpr PublishedModel kModels[] = {
    // name, layers, hidden, heads, key heads, head size, experts, chosen, expert width, vocabulary,
    // dense layers, dense width, shared experts, key rank, query rank, window
    {"mixtral8x22b", 56, 6144, 48, 8, 128, 8, 2, 16384, 32000},
    {"mixtral8x7b", 32, 4096, 32, 8, 128, 8, 2, 14336, 32000},
    {"qwen330ba3b", 48, 2048, 32, 4, 128, 128, 8, 768, 151936},
    {"qwen3235ba22b", 94, 4096, 64, 4, 128, 128, 8, 1536, 151936},
    {"gptoss20b", 24, 2880, 64, 8, 64, 32, 4, 2880, 201088, 0, 0, 0, 0, 0, 128},
    {"gptoss120b", 36, 2880, 64, 8, 64, 128, 4, 2880, 201088, 0, 0, 0, 0, 0, 128},
    {"grok1", 64, 6144, 48, 8, 128, 8, 2, 32768, 131072},
    {"dbrx", 40, 6144, 48, 8, 128, 16, 4, 10752, 100352},
    {"olmoe", 16, 2048, 16, 16, 128, 64, 8, 1024, 50304},
    {"deepseekv2lite", 27, 2048, 16, 16, 128, 64, 6, 1408, 102400, 1, 10944, 2, 512, 0},
    {"deepseekv2", 60, 5120, 128, 128, 128, 160, 6, 1536, 102400, 1, 12288, 2, 512, 1536},
    {"deepseekv3", 61, 7168, 128, 128, 128, 256, 8, 2048, 129280, 3, 18432, 1, 512, 1536},
    {"moonlight", 27, 2048, 16, 16, 128, 64, 6, 1408, 163840, 1, 11264, 2, 512, 0},
    {"kimik2", 61, 7168, 64, 64, 128, 384, 8, 2048, 163840, 1, 18432, 1, 512, 1536},
};

}  // namespace

const PublishedModel* find_published_model(std::string_view name) {
  const std::string given = plain(name);
  for (const PublishedModel& model : kModels)
    if (given.starts_with(model.name)) return &model;
  return nullptr;
}

}  // namespace weft::runs
