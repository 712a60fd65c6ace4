/**
 * An import of node:http reads all of its properties, and three of them load the code of fetch(): 60 ms of each
 * start, for classes that nothing here imports. Afterwards node:http has no such properties; the global fetch() and
 * WebSocket are unaffected. REQUIRES: node:http was not imported before.
 */
export function importSmallHttp(): void {
  const http = process.getBuiltinModule('node:http')
  for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, name)
}
