//! The script of a page: modules that stand alone in their files (where they are linted, formatted
//! and imported by tests), joined into one without their imports and exports.

/// The modules, each behind those it needs.
const MODULES: [&str; 9] = [
    include_str!("page/elements.js"),
    include_str!("page/axis.js"),
    include_str!("page/paths.js"),
    include_str!("page/chart.js"),
    include_str!("page/readout.js"),
    include_str!("page/zoom.js"),
    include_str!("page/save.js"),
    include_str!("page/tables.js"),
    include_str!("page/main.js"),
];

/// All modules as one.
pub(super) fn script() -> String {
    let mut out = String::new();
    for module in MODULES {
        let mut importing = false;
        for line in module.lines() {
            importing |= line.starts_with("import ");
            let comment = line.trim_start().starts_with("//") || line.trim_start().starts_with("/**");
            if !importing && !comment && !line.is_empty() {
                out.push_str(line.strip_prefix("export ").unwrap_or(line).trim_start());
                out.push('\n');
            }
            importing &= !line.ends_with(';');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_import_and_no_export_is_left_and_no_name_is_declared_twice() {
        let script = script();
        let mut names = Vec::new();
        for line in script.lines() {
            assert!(!line.starts_with("import ") && !line.starts_with("export "), "{line}");
        }
        for module in MODULES {
            // Only what stands at the left margin is visible to other modules.
            for line in module.lines() {
                let line = line.strip_prefix("export ").unwrap_or(line);
                if let Some(rest) = line.strip_prefix("const ").or_else(|| line.strip_prefix("let ")) {
                    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    assert!(name.is_empty() || !names.contains(&name), "{name} twice");
                    names.push(name);
                }
            }
        }
        assert!(names.iter().any(|name| name == "chart"));
    }

    #[test]
    fn what_a_module_imports_stands_before_it() {
        let place = |file: &str| MODULES.iter().position(|module| *module == source(file)).unwrap();
        for (number, module) in MODULES.iter().enumerate() {
            for line in module.lines().filter(|line| line.contains(" from \"./")) {
                let file = line.split("\"./").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
                assert!(place(file) < number, "{line}");
            }
        }
    }

    fn source(file: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/html/page/");
        std::fs::read_to_string(format!("{folder}{file}")).unwrap()
    }
}
