// Runs a WASI program with its arguments and this environment: node wasi.js FILE.wasm [ARGUMENT...]
const fs = require("node:fs");
const { WASI } = require("node:wasi");

const [file, ...rest] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [file, ...rest], env: process.env });
const program = new WebAssembly.Module(fs.readFileSync(file));
const instance = new WebAssembly.Instance(program, wasi.getImportObject());
process.exitCode = wasi.start(instance);
