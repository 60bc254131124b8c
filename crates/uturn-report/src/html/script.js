(function () {
  "use strict";
  var form = document.getElementById("filter");
  var words = document.getElementById("words");
  var code = document.getElementById("code");
  var count = document.getElementById("count");
  var all = Array.from(document.querySelectorAll("article")).map(function (one) {
    var list = one.querySelector("details.alike");
    return {
      at: one,
      count: Number(one.dataset.count),
      list: list,
      rows: list ? Array.from(list.querySelectorAll("li")) : [],
      texts: null
    };
  });
  var total = all.reduce(function (sum, one) { return sum + one.count; }, 0);
  function hits(one, wanted) {
    var common = one.at.dataset.find;
    if (!one.list) {
      return wanted.every(function (word) { return common.includes(word); }) ? 1 : 0;
    }
    if (one.texts === null) {
      one.texts = one.rows.map(function (row) { return row.textContent.toLowerCase(); });
    }
    var left = wanted.filter(function (word) { return !common.includes(word); });
    var found = 0;
    one.rows.forEach(function (row, at) {
      var fits = left.every(function (word) { return one.texts[at].includes(word); });
      if (row.hidden === fits) { row.hidden = !fits; }
      found += fits ? 1 : 0;
    });
    one.list.open = [left.length > 0, found > 0].every(Boolean);
    one.list.firstElementChild.textContent =
      (left.length > 0 ? found + " of " : "All ") + one.count + " findings";
    return left.length > 0 ? found : one.count;
  }
  function show() {
    var wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    var severities = Array.from(form.elements.severity)
      .filter(function (one) { return one.checked; })
      .map(function (one) { return one.value; });
    var shown = 0;
    all.forEach(function (one) {
      var fits = [
        severities.includes(one.at.dataset.severity),
        ["", one.at.dataset.code].includes(code.value)
      ].every(Boolean);
      var found = fits ? hits(one, wanted) : 0;
      one.at.hidden = found === 0;
      shown += found;
    });
    count.textContent = shown + " of " + total + " shown";
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
