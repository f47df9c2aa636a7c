// eslint rules for the scripts and styles of the pages, which target browsers of 2022 or later.
import css from "@eslint/css";
import js from "@eslint/js";
import globals from "globals";

const strict = {
  eqeqeq: "error",
  "no-implicit-globals": "off", // the scripts of a page share one scope
  "no-shadow": "error",
  "no-unused-vars": ["error", { vars: "local" }],
  "no-var": "error",
  "prefer-const": "error",
};

// Names that drawing.js, which is loaded first, provides to controls.js.
const drawing = Object.fromEntries(
  ["above", "data", "draw", "frame", "gutter", "plotWidth", "readColors", "setView", "showBytes", "showTime", "state",
    "toTime", "toX", "tracks", "view", "whole"].map(name => [name, "readonly"]));

export default [
  {
    files: ["step_page/*.js"],
    ...js.configs.recommended,
    languageOptions: { ecmaVersion: 2022, sourceType: "script", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: { ...js.configs.recommended.rules, ...strict },
  },
  { files: ["step_page/controls.js"], languageOptions: { globals: drawing } },
  { files: ["**/*.css"], language: "css/css", plugins: { css }, rules: { ...css.configs.recommended.rules, "css/use-baseline": "off" } },
];
