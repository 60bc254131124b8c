(function () {
  "use strict";
  var form = document.getElementById("filter");
  var words = document.getElementById("words");
  var code = document.getElementById("code");
  var count = document.getElementById("count");
  var groups = Array.from(document.querySelectorAll("article")).map(function (article) {
    var others = article.querySelector("details.others");
    return {
      article: article,
      count: Number(article.dataset.count),
      worst: article.querySelector(".finding"),
      others: others,
      heading: others ? others.firstElementChild.textContent : "",
      rows: others ? Array.from(others.querySelectorAll(":scope > ul > li")) : [],
      texts: null
    };
  });
  var total = groups.reduce(function (sum, group) { return sum + group.count; }, 0);
  function textOf(row) {
    return row.dataset.find ? row.dataset.find : row.textContent.toLowerCase();
  }
  // Shows the findings of a group that have every word, and returns how many there are.
  function filterGroup(group, wanted) {
    var left = wanted.filter(function (word) {
      return !group.article.dataset.find.includes(word);
    });
    function fits(text) {
      return left.every(function (word) { return text.includes(word); });
    }
    if (group.texts === null) { group.texts = group.rows.map(textOf); }
    var isWorst = fits(group.worst.dataset.find);
    var rows = 0;
    group.worst.hidden = !isWorst;
    group.rows.forEach(function (row, index) {
      var isHit = fits(group.texts[index]);
      if (row.hidden === isHit) { row.hidden = !isHit; }
      rows += isHit ? 1 : 0;
    });
    if (group.others) {
      group.others.open = left.length > 0 ? rows > 0 : false;
      group.others.hidden = rows === 0;
      group.others.firstElementChild.textContent =
        left.length > 0 ? rows + " of the other findings" : group.heading;
    }
    return left.length > 0 ? rows + (isWorst ? 1 : 0) : group.count;
  }
  function filter() {
    var wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    var severities = Array.from(form.elements.severity)
      .filter(function (box) { return box.checked; })
      .map(function (box) { return box.value; });
    var shown = 0;
    groups.forEach(function (group) {
      var data = group.article.dataset;
      var fits = severities.includes(data.severity) ? ["", data.code].includes(code.value) : false;
      var found = fits ? filterGroup(group, wanted) : 0;
      group.article.hidden = found === 0;
      shown += found;
    });
    count.textContent = shown + " of " + total + " shown";
  }
  // Opens what the address names, and everything around it.
  function open() {
    var target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) { return; }
    for (var node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") { node.open = true; }
    }
    target.scrollIntoView();
  }
  if (form) {
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("reset", function () { setTimeout(filter, 0); });
    document.addEventListener("keydown", function (event) {
      var isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key === "/" ? !isTyping : false) {
        event.preventDefault();
        words.focus();
      }
    });
    filter();
  }
  addEventListener("hashchange", open);
  open();
})();
