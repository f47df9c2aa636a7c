// weft/torch/module.h -- the Python module of the extension; included once, by backend.cpp.
#pragma once
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  namespace py = pybind11;
  // Registers the types of stores, process groups and timeouts.
  py::module_::import("torch.distributed");
  module.def("load", [](const std::string& path) { weft_torch::library().load(path); }, py::arg("library"));
  module.def("create", &weft_torch::create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::call_guard<py::gil_scoped_release>());
  module.def("finish_all", &weft_torch::finish_all, py::call_guard<py::gil_scoped_release>());
}
