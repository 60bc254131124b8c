(function () {
  "use strict";
  var form = document.getElementById("filter");
  var words = document.getElementById("words");
  var code = document.getElementById("code");
  var count = document.getElementById("count");
  var all = Array.from(document.querySelectorAll("article"));
  function show() {
    var wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    var severities = Array.from(form.elements.severity)
      .filter(function (one) { return one.checked; })
      .map(function (one) { return one.value; });
    var shown = 0;
    all.forEach(function (one) {
      var text = one.dataset.find;
      var fits = [
        severities.includes(one.dataset.severity),
        ["", one.dataset.code].includes(code.value),
        wanted.every(function (word) { return text.includes(word); })
      ].every(Boolean);
      one.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    count.textContent = shown + " of " + all.length + " shown";
  }
  function open() {
    var at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (at ? at.tagName === "DETAILS" : false) {
      at.open = true;
      at.scrollIntoView();
    }
  }
  form.hidden = all.length === 0;
  form.addEventListener("input", show);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(show, 0); });
  document.addEventListener("keydown", function (event) {
    var typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" ? !typing : false) {
      event.preventDefault();
      words.focus();
    }
  });
  addEventListener("hashchange", open);
  show();
  open();
})();
