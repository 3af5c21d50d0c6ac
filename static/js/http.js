/** Talking to the product's API: JSON in and out, errors as one kind of exception. */

/** What the server (or the way to it) said instead of a result. */
export class ApiError extends Error {
  /**
   * @param {object} said
   * @param {string} said.message one sentence for people
   * @param {number|null} [said.status] HTTP status; null when no answer came
   * @param {string|null} [said.code] the API's machine-readable code
   * @param {Record<string, string[]>} [said.fields] sentences by field name
   */
  constructor({ message, status = null, code = null, fields = {} }) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

/** The CSRF token that base.html gives to htmx on the body, or to scripts in a meta element. */
export function csrfToken(page = document) {
  const meta = page.querySelector('meta[name="th-csrf"]');
  if (meta) return meta.content;
  const headers = JSON.parse(page.body.getAttribute("hx-headers") || "{}");
  const name = Object.keys(headers).find((key) => key.toLowerCase() === "x-csrftoken");
  return name ? headers[name] : "";
}

/** All sentences inside a DRF error value: a string, a list, or an object of these. */
function sentences(value) {
  if (value === null || value === undefined) return [];
  if (typeof value === "object") return Object.values(value).flatMap(sentences);
  return [String(value)];
}

/** Turn an error body, `{"detail", "code"}` or `{"field": ["…"], "code"}`, into an ApiError. */
export function errorFrom(status, body) {
  const { detail, code = null, ...rest } = body && typeof body === "object" ? body : {};
  const fields = {};
  for (const [name, value] of Object.entries(rest)) fields[name] = sentences(value);
  const message =
    sentences(detail).join(" ") ||
    Object.values(fields).flat().join(" ") ||
    `The server answered with an error (${status}).`;
  return new ApiError({ message, status, code, fields });
}

/**
 * Fetch JSON with the person's session.
 *
 * @param {string} url
 * @param {{method?: string, body?: object}} [options] body is sent as JSON
 * @returns {Promise<{data: any, date: number|null}>} date: the server's clock in ms, if it said so
 * @throws {ApiError} for every other outcome, a missing answer included
 */
export async function fetchJson(url, { method = "GET", body } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  const response = await send(url, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "same-origin",
    cache: "no-store",
  });
  const data = await response.json().catch(() => null);
  if (!response.ok) throw errorFrom(response.status, data);
  const date = Date.parse(response.headers.get("Date") ?? "");
  return { data, date: Number.isNaN(date) ? null : date };
}

async function send(url, request) {
  try {
    return await fetch(url, request);
  } catch {
    const message =
      request.method === "GET"
        ? "The server does not answer."
        : "The server did not answer, so it is not known whether the change arrived.";
    throw new ApiError({ message });
  }
}
