// Any text is a list of hosts, a matrix of links, both or neither. Host names are unique, links are
// symmetric, and every error has a message.

#include <set>

#include "promise.h"
#include "weft/formats/host_list.h"
#include "weft/formats/smi_topology.h"

using weft::fuzz::promise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)weft::formats::looks_like_host_list(text);
  if (const auto list = weft::formats::read_host_list(text); list.ok()) {
    promise(!list->hosts.empty() && list->hosts.size() <= weft::formats::kMostHosts, "a list has hosts");
    promise(list->slots >= 0, "slots are not negative");
    const std::set<std::string> names(list->hosts.begin(), list->hosts.end());
    promise(names.size() == list->hosts.size(), "a host is listed once");
  } else {
    promise(list.error().fault == weft::Fault::user && !list.error().message.empty(),
            "an error is a user error with a message");
  }
  const bool looks = weft::formats::looks_like_smi_topology(text);
  const auto links = weft::formats::read_smi_topology(text);
  if (!links.ok()) {
    promise(links.error().fault == weft::Fault::user && !links.error().message.empty(),
            "an error is a user error with a message");
    return 0;
  }
  promise(looks || size > (1 << 16), "a readable file is recognized");
  promise(links->gpus() >= 1, "a matrix has GPUs");
  for (std::size_t a = 0; a < links->nvlinks.size(); ++a)
    for (std::size_t b = 0; b < links->nvlinks.size(); ++b)
      promise(links->nvlinks[a][b] == links->nvlinks[b][a] && links->nvlinks[a][b] >= 0,
              "links are symmetric");
  const std::int32_t count = links->nvlinks_per_gpu(18);
  promise(count >= 0 && count <= 18, "a GPU has at most 18 links");
  return 0;
}
