//! What a function could return instead, judged by the type it says it returns.

use syn::{GenericArgument, PathArguments, ReturnType, Type};

/// Values for the body of a function, as Rust expressions; those of a wrong type do not compile and
/// are dropped later.
pub(crate) fn of(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".into()],
        ReturnType::Type(_, kind) => of_type(kind),
    }
}

fn of_type(kind: &Type) -> Vec<String> {
    match kind {
        Type::Tuple(tuple) if tuple.elems.is_empty() => vec!["()".into()],
        Type::Tuple(tuple) => {
            let first = |t| of_type(t).into_iter().next().unwrap_or_else(|| "Default::default()".into());
            let values: Vec<String> = tuple.elems.iter().map(first).collect();
            vec![format!("({},)", values.join(", "))]
        }
        Type::Reference(reference) => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => vec!["\"\"".into(), "\"xyzzy\"".into()],
            Type::Slice(_) if reference.mutability.is_none() => vec!["&[]".into()],
            _ => vec![],
        },
        Type::ImplTrait(_) => vec!["::std::iter::empty()".into()],
        Type::Path(path) => path.path.segments.last().map(of_path).unwrap_or_default(),
        _ => vec![],
    }
}

fn of_path(segment: &syn::PathSegment) -> Vec<String> {
    let inner = || -> Vec<String> {
        let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return vec![] };
        let types = arguments.args.iter().filter_map(|a| if let GenericArgument::Type(t) = a { Some(t) } else { None });
        types.take(1).flat_map(of_type).collect()
    };
    let listed = |values: &[&str]| values.iter().map(|v| v.to_string()).collect();
    let wrapped = |with: &str| inner().into_iter().map(|v| format!("{with}({v})")).collect::<Vec<_>>();
    match segment.ident.to_string().as_str() {
        "bool" => listed(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => listed(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => listed(&["0", "1", "-1"]),
        "f32" | "f64" => listed(&["0.0", "1.0", "-1.0"]),
        "String" => listed(&["String::new()", "\"xyzzy\".into()"]),
        "Option" => [listed(&["None"]), wrapped("Some")].concat(),
        // `fmt::Result` and other names for a result of nothing.
        "Result" if segment.arguments.is_none() => listed(&["Ok(Default::default())"]),
        "Result" => wrapped("Ok"),
        "Box" => wrapped("Box::new"),
        "Vec" => [listed(&["Vec::new()"]), inner().into_iter().map(|v| format!("vec![{v}]")).collect()].concat(),
        _ => listed(&["Default::default()"]),
    }
}
