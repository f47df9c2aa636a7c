// weft/app/explain/step_page_parts.h -- what every page of a step has: its style, its tools and its script.
//
// They are files of web/step_page/, which travel inside the program. The script finds the data in the element
// `data`, a canvas for each timeline in `.track canvas`, and the rest by id. Included by the files of explain/
// that make the page.
#pragma once
#include <string_view>

namespace weft::explain {

std::string_view step_page_style();
std::string_view step_page_tools();     // buttons, search and help above the timelines
std::string_view step_page_drawing();   // timelines into canvases
std::string_view step_page_controls();  // pointer, keys, search, theme; comes behind the drawing

}  // namespace weft::explain
