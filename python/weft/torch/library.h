// weft/torch/library.h -- the functions of libweft.so that the backend calls.
//
// The library is opened by path when the module is loaded: the extension has no link-time dependency
// on it, and its symbols stay out of torch's namespace.
#pragma once
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "weft_comm.h"

namespace weft_torch {

struct Library {
  decltype(&::weft_last_error) last_error = nullptr;
  decltype(&::weft_join) join = nullptr;
  decltype(&::weft_close) close = nullptr;
  decltype(&::weft_run) run = nullptr;
  decltype(&::weft_all_to_allv) all_to_allv = nullptr;
  decltype(&::weft_set_timeout) set_timeout = nullptr;
  decltype(&::weft_send_tagged) send_tagged = nullptr;
  decltype(&::weft_receive_tagged) receive_tagged = nullptr;
  decltype(&::weft_split) split = nullptr;
  decltype(&::weft_start) start = nullptr;
  decltype(&::weft_wait) wait = nullptr;
  decltype(&::weft_wait_for) wait_for = nullptr;
  decltype(&::weft_forget) forget = nullptr;
  decltype(&::weft_abort) abort = nullptr;

  // Loads the functions. Throws if the file cannot be loaded or lacks one of them.
  void load(const std::string& path) {
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const why = ::dlerror();
      throw std::runtime_error(why == nullptr ? "cannot load " + path : why);
    }
    find(handle, path, "weft_last_error", last_error);
    find(handle, path, "weft_join", join);
    find(handle, path, "weft_close", close);
    find(handle, path, "weft_run", run);
    find(handle, path, "weft_all_to_allv", all_to_allv);
    find(handle, path, "weft_set_timeout", set_timeout);
    find(handle, path, "weft_send_tagged", send_tagged);
    find(handle, path, "weft_receive_tagged", receive_tagged);
    find(handle, path, "weft_split", split);
    find(handle, path, "weft_start", start);
    find(handle, path, "weft_wait", wait);
    find(handle, path, "weft_wait_for", wait_for);
    find(handle, path, "weft_forget", forget);
    find(handle, path, "weft_abort", abort);
  }

 private:
  template <class Function>
  static void find(void* handle, const std::string& path, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    if (function == nullptr) throw std::runtime_error(path + " lacks " + name + ": it is another version of Weft");
  }
};

inline Library& library() {
  static Library loaded;
  return loaded;
}

}  // namespace weft_torch
