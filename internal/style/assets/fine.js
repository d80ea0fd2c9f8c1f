"use strict";
// Pictures are drawn twice as fine as the screen, so that paper shows them sharp.
{ const fine = Math.max(2, window.devicePixelRatio || 1); Object.defineProperty(window, "devicePixelRatio", {get: () => fine, configurable: true}); }
