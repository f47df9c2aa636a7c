// weft/app/explain/step_page_parts.h -- the parts that all step pages share: style, tools and script.
//
// They are files in web/step_page/, embedded in the program. The script finds the data in the
// element `data`, a canvas per timeline in `.track canvas`, and the rest by id. Included by the
// files of explain/ that write the page.
#pragma once
#include <string_view>

namespace weft::explain {

std::string_view step_page_style();
std::string_view step_page_tools();     // buttons, search box and help above the timelines
std::string_view step_page_drawing();   // draws timelines on canvases
std::string_view step_page_controls();  // pointer, keys, search, theme; goes after the drawing script

}  // namespace weft::explain
