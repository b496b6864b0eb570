import { HttpApi } from "./api.js";
import { mount } from "./app.js";

const token = new URLSearchParams(location.search).get("token") ?? "";
mount(document.getElementById("workbench"), new HttpApi(token));
