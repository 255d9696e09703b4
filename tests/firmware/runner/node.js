// Runs a wasm32 firmware: node node.js FILE.wasm
const fs = require("fs");

const console_ = {
  write: (text, length) => fs.writeSync(1, Buffer.from(instance.exports.memory.buffer, text, length)),
};
const module_ = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const instance = new WebAssembly.Instance(module_, { console: console_ });
instance.exports.run();
