/** Keeping the states of GPUs and hosts true while the page stays open. */

import { fetchJson } from "../http.js";

/**
 * Ask for the states and write them into the hosts.
 *
 * @param {{gpus: string, hosts: string}} urls
 * @param {object[]} hosts as in the page's config; changed in place
 * @returns {Promise<boolean>} whether anything differs from before
 * @throws {import("../http.js").ApiError}
 */
export async function refreshStates(urls, hosts, fetch = fetchJson) {
  const gpus = new Map((await everyPage(urls.gpus, fetch)).map((gpu) => [gpu.uuid, gpu]));
  const known = await everyPage(urls.hosts, fetch);
  const byName = new Map(known.map((host) => [host.name, host]));
  let haveChanged = false;
  for (const host of hosts) {
    haveChanged = takeState(host, byName.get(host.name)) || haveChanged;
    for (const gpu of host.gpus) haveChanged = takeState(gpu, gpus.get(gpu.uuid)) || haveChanged;
  }
  return haveChanged;
}

function takeState(known, told) {
  if (!told || (known.state === told.state && (known.reason ?? "") === (told.reason ?? ""))) {
    return false;
  }
  known.state = told.state;
  known.reason = told.reason ?? "";
  return true;
}

async function everyPage(url, fetch) {
  const results = [];
  let next = `${url}?page_size=200`;
  while (next) {
    const { data } = await fetch(next);
    results.push(...data.results);
    next = data.next ? `${url}${new URL(data.next, "http://localhost").search}` : null;
  }
  return results;
}
