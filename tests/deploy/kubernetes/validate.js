// Reads JSON objects from stdin and prints the error of each invalid one.
import { readFileSync } from "node:fs";

const packages = {
  "gateway.networking.k8s.io": "gateway-api",
  "keda.sh": "keda",
  "monitoring.coreos.com": "prometheus-operator",
};
for (const object of JSON.parse(readFileSync(0, "utf-8"))) {
  const [group] = object.apiVersion.split("/");
  const path = `@kubernetes-models/${packages[group]}/${object.apiVersion}/${object.kind}`;
  const models = await import(path);
  try {
    new models[object.kind](object).validate();
  } catch (error) {
    console.error(error);
  }
}
