// Gives each view of a form a submission id, so that a double click or a page sent again is one lead. A person who comes back
// and changes something gets a new id: that is a new submission.
(function () {
  "use strict";
  var NAME = "emanet_id";
  var me = document.currentScript;
  var address = me ? me.src.split("?")[0] : "";

  function freshId() {
    var source = window.crypto;
    // randomUUID exists on pages served over https only.
    if (source && source.randomUUID) return source.randomUUID();
    var id = "";
    var bytes = source && source.getRandomValues ? source.getRandomValues(new Uint8Array(16)) : null;
    for (var i = 0; i < 16; i++) {
      var byte = bytes ? bytes[i] : Math.floor(Math.random() * 256);
      id += (byte + 256).toString(16).slice(1);
    }
    return id;
  }

  // An input of the name "action" hides the property, hence the attribute.
  function isOurs(form) {
    if (form.hasAttribute("data-emanet")) return true;
    var action = document.createElement("a");
    action.href = form.getAttribute("action") || "";
    return address !== "" && action.href.split("?")[0] === address;
  }

  function prepare(form) {
    if (!isOurs(form)) return null;
    var field = form.querySelector('input[name="' + NAME + '"]');
    if (!field) {
      field = document.createElement("input");
      field.type = "hidden";
      field.name = NAME;
      field.autocomplete = "off";
      form.appendChild(field);
    }
    if (!field.value) field.value = freshId();
    return field;
  }

  function changed(event) {
    var form = event.target && event.target.form;
    if (form && form.emanetSent) {
      form.emanetSent = false;
      var field = prepare(form);
      if (field) field.value = freshId();
    }
  }

  function prepareAll() {
    for (var i = 0; i < document.forms.length; i++) prepare(document.forms[i]);
  }

  document.addEventListener("submit", function (event) {
    if (prepare(event.target)) event.target.emanetSent = true;
  }, true);
  document.addEventListener("input", changed, true);
  document.addEventListener("change", changed, true);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", prepareAll);
  else prepareAll();
})();
